//! Clocks and timers: what a driver takes from its environment.
//!
//! A [`Clock`] tells the time. [`Sleep`] and [`BlockingSleep`] are clocks that can also wait; implement one of them to
//! run retries on another timer.

pub(crate) mod cancel;
pub(crate) mod clock;
pub(crate) mod entropy;
#[cfg(any(feature = "tokio", feature = "async-io", feature = "futures-timer"))]
mod runtimes;
mod timer;

pub use clock::{Clock, Deadline, SystemClock};
#[cfg(feature = "async-io")]
pub use runtimes::AsyncIo;
#[cfg(feature = "futures-timer")]
pub use runtimes::FuturesTimer;
#[cfg(feature = "tokio")]
pub use runtimes::Tokio;
pub use timer::{BlockingSleep, Sleep, SleepFn, ThreadSleep};
