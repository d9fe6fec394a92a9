//! Optimistic concurrency.

mod engines;
mod plain;
mod table;
