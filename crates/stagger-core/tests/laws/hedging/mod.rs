//! Hedging: when a copy is due, and attempt latencies.

mod latencies;
mod state;
