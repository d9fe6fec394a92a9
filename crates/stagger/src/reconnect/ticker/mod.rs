//! Repeating work: on a policy's schedule, or periodically.

pub(crate) mod blocking;
mod state;
#[expect(clippy::module_inception, reason = "the file is named for its type")]
mod ticker;
mod times;

pub use ticker::{Tick, Ticker, interval};
pub use times::{Periodic, Scheduled};
