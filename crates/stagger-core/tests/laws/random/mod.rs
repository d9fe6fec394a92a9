//! Randomness: frozen values for single seeds, bounds for all seeds, distributions over many calls.

mod decorrelated;
mod distribution;
mod golden;
