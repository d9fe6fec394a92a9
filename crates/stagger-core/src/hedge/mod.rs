//! A second copy of a slow attempt.

mod latencies;
mod policy;
mod state;

pub use latencies::Latencies;
pub use policy::{Hedge, HedgeDelay};
pub use state::HedgeState;
