//! Reconnecting, and other work that repeats on a schedule: tickers and intervals.

mod client;
mod driver;
#[expect(clippy::module_inception, reason = "the file is named for its type")]
mod reconnect;
pub(crate) mod ticker;

pub use client::{Closed, Fatal};
pub use driver::ReconnectDriver;
pub use reconnect::Reconnect;
pub use ticker::{Periodic, Scheduled, Tick, Ticker, interval};
