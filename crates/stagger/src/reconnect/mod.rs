//! Reconnecting, and other work that repeats on a schedule: tickers and intervals.

mod driver;
#[allow(clippy::module_inception)]
mod reconnect;

pub use driver::ReconnectDriver;
pub use reconnect::Reconnect;

pub use crate::ticker::{Periodic, Scheduled, Tick, Ticker, interval};
