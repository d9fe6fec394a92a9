//! The registry of named policies: what holds for every entry.

mod distribution;
mod golden;
mod names;
