//! Hedging: a second copy of a slow attempt, to cut tail latency.

mod hedging;

#[doc(inline)]
pub use stagger_core::hedge::{Hedge, HedgeDelay, HedgeState, Latencies};

#[cfg(feature = "tokio")]
pub use crate::hedge::hedging::hedge;
pub use crate::hedge::hedging::{Hedged, Hedging, hedge_with_timer};
