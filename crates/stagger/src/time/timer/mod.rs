//! Timers: clocks that can be slept on.

#[cfg(feature = "async-io")]
pub(crate) mod async_io;
pub(crate) mod from_fn;
#[cfg(feature = "futures-timer")]
pub(crate) mod futures_timer;
pub(crate) mod sleep;
pub(crate) mod thread;
#[cfg(feature = "tokio")]
pub(crate) mod tokio;
