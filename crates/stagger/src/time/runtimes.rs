//! The timers of async runtimes.

#[cfg(feature = "async-io")]
use core::future::Future;
#[cfg(any(feature = "tokio", feature = "async-io"))]
use core::pin::Pin;
#[cfg(feature = "async-io")]
use core::task::{Context, Poll};
use core::time::Duration;
#[cfg(feature = "tokio")]
use std::sync::OnceLock;

#[cfg(feature = "futures-timer")]
use futures_timer::Delay;
use stagger_core::Instant;
#[cfg(feature = "tokio")]
use tokio::time::{Instant as TokioInstant, Sleep as TokioSleep};

use super::Clock;
#[cfg(any(feature = "async-io", feature = "futures-timer"))]
use super::SystemClock;
#[cfg(feature = "tokio")]
use super::clock::MIDDLE;
use super::timer::Sleep;

/// Tokio's timer and clock: the default of the feature `tokio`. With `tokio::time::pause` both are virtual.
///
/// Its resolution is 1 ms.
///
/// # Panics
///
/// Tokio panics when a sleep or a time limit begins outside a runtime, or in one that was built without `enable_time`
/// or `enable_all`.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokio;

#[cfg(feature = "tokio")]
impl Clock for Tokio {
    fn now(&self) -> Instant {
        // Any fixed instant works, with room below it: with paused time every runtime has its own clock, whose readings
        // start near the real present, and another runtime may have been paused before this one started.
        static EPOCH: OnceLock<TokioInstant> = OnceLock::new();
        let epoch = *EPOCH.get_or_init(TokioInstant::now);
        let now = TokioInstant::now();
        match now.checked_duration_since(epoch) {
            Some(since) => MIDDLE.saturating_add(since),
            None => {
                let before = epoch.saturating_duration_since(now);
                Instant::from_nanos(
                    MIDDLE.as_nanos().saturating_sub(u64::try_from(before.as_nanos()).unwrap_or(u64::MAX)),
                )
            }
        }
    }
}

#[cfg(feature = "tokio")]
impl Sleep for Tokio {
    type Sleeping = Pin<Box<TokioSleep>>;

    fn sleep(&self, length: Duration) -> Self::Sleeping {
        Box::pin(tokio::time::sleep(length))
    }

    fn rearm(&self, sleeping: &mut Self::Sleeping, length: Duration) {
        // Tokio itself uses thirty years for instants too far away to represent.
        const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
        let now = TokioInstant::now();
        sleeping.as_mut().reset(now.checked_add(length).unwrap_or_else(|| now + FAR));
    }

    fn resolution(&self) -> Duration {
        Duration::from_millis(1)
    }
}

/// The timer of `async-io`, used by smol and async-std: `.timer(AsyncIo)`.
#[cfg(feature = "async-io")]
#[derive(Clone, Copy, Debug, Default)]
pub struct AsyncIo;

/// The future of [`AsyncIo`].
#[cfg(feature = "async-io")]
#[derive(Debug)]
pub struct AsyncIoSleeping(async_io::Timer);

#[cfg(feature = "async-io")]
impl Future for AsyncIoSleeping {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

#[cfg(feature = "async-io")]
impl Clock for AsyncIo {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

#[cfg(feature = "async-io")]
#[diagnostic::do_not_recommend]
impl Sleep for AsyncIo {
    type Sleeping = AsyncIoSleeping;

    fn sleep(&self, length: Duration) -> Self::Sleeping {
        AsyncIoSleeping(async_io::Timer::after(length))
    }

    fn rearm(&self, sleeping: &mut Self::Sleeping, length: Duration) {
        sleeping.0.set_after(length);
    }
}

/// The timer of `futures-timer`, which has its own thread and works with any executor: `.timer(FuturesTimer)`.
#[cfg(feature = "futures-timer")]
#[derive(Clone, Copy, Debug, Default)]
pub struct FuturesTimer;

#[cfg(feature = "futures-timer")]
impl Clock for FuturesTimer {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

#[cfg(feature = "futures-timer")]
#[diagnostic::do_not_recommend]
impl Sleep for FuturesTimer {
    type Sleeping = Delay;

    fn sleep(&self, length: Duration) -> Delay {
        Delay::new(length)
    }

    fn rearm(&self, sleeping: &mut Delay, length: Duration) {
        sleeping.reset(length);
    }
}
