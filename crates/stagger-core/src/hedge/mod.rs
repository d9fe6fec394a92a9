//! Hedging: a second copy of a slow attempt, of which the first answer wins.

mod latencies;
mod policy;
mod state;

pub use latencies::Latencies;
pub use policy::{Hedge, HedgeDelay};
pub use state::HedgeState;
