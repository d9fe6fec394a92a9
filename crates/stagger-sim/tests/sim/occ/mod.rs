//! Optimistic concurrency.

mod engines;
mod table;
