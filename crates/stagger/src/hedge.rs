//! Hedging: a second copy of a slow attempt, to cut tail latency.

#[cfg(feature = "tokio")]
pub use crate::hedging::hedge;
pub use crate::hedging::{Hedged, Hedging, HedgingReport, hedge_with_timer};
#[doc(inline)]
pub use stagger_core::hedge::{Hedge, HedgeDelay, HedgeState, Latencies};
