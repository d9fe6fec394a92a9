//! Repeating work: on a policy's schedule, or periodically.

pub(crate) mod blocking;
mod periodic;
mod scheduled;
mod state;
mod steps;
mod tick;
#[expect(clippy::module_inception, reason = "the file is named for its type")]
mod ticker;
mod times;

pub use periodic::Periodic;
pub use scheduled::Scheduled;
pub use tick::Tick;
pub use ticker::{Ticker, interval};
