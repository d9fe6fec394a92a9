//! Tests of optimistic concurrency control.

mod reference_model;
mod scenario;
mod table;
