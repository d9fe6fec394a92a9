//! Clocks and timers: what a driver takes from its environment.
//!
//! A [`Clock`] tells the time. [`Sleep`] and [`BlockingSleep`] are clocks that can also wait; implement one of them to
//! run retries on another timer.

pub(crate) mod cancel;
pub(crate) mod clock;
pub(crate) mod deadline;
pub(crate) mod entropy;
pub(crate) mod timer;

pub use clock::{Clock, SystemClock};
pub use deadline::Deadline;
#[cfg(feature = "async-io")]
pub use timer::async_io::AsyncIo;
pub use timer::from_fn::SleepFn;
#[cfg(feature = "futures-timer")]
pub use timer::futures_timer::FuturesTimer;
pub use timer::sleep::{BlockingSleep, Sleep};
pub use timer::thread::ThreadSleep;
#[cfg(feature = "tokio")]
pub use timer::tokio::Tokio;
