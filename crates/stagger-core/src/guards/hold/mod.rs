//! How a limiter holds calls: the order in which they wait, and the bounds of their waiting. The quiet period and the pacer
//! share it.

mod calls;
mod mode;
mod permit;
mod places;

pub(super) use calls::{HeldCalls, HeldCounts, HoldSettings, MAX_WAITING};
pub use mode::LimiterMode;
pub(super) use permit::Permit;
