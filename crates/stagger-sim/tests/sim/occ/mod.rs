//! Tests of optimistic concurrency control.

mod reference_model;
mod table;
