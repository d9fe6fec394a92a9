//! The registry of named policies: properties of every entry.

mod distribution;
mod golden;
mod names;
