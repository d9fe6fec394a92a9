//! Hedging: when a copy is due, and how long attempts take.

mod latencies;
mod state;
