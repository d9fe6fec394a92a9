//! Tests of optimistic concurrency control.

mod engines;
mod reference_model;
mod table;
