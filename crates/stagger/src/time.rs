//! Clocks and timers: what a driver takes from its environment.
//!
//! A [`Clock`] tells the time. [`Sleep`] and [`BlockingSleep`] are clocks that can also wait; implement one of them to
//! run retries on another timer.

pub use crate::clock::{Clock, SystemClock};
pub use crate::deadline::Deadline;
#[cfg(feature = "async-io")]
pub use crate::timer::AsyncIo;
#[cfg(feature = "futures-timer")]
pub use crate::timer::FuturesTimer;
#[cfg(feature = "tokio")]
pub use crate::timer::Tokio;
pub use crate::timer::{BlockingSleep, Sleep, SleepFn, ThreadSleep};
