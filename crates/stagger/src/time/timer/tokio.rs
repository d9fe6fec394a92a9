use core::pin::Pin;
use core::time::Duration;
use std::sync::OnceLock;

use stagger_core::Instant;
use tokio::time::{Instant as TokioInstant, Sleep as TokioSleep};

use super::sleep::Sleep;
use crate::time::Clock;
use crate::time::clock::MIDDLE;

/// Tokio's timer and clock: the default of the feature `tokio`. With `tokio::time::pause` both are virtual.
///
/// Its resolution is 1 ms.
///
/// # Panics
///
/// Tokio panics when a sleep or a time limit begins outside a runtime, or in one that was built without `enable_time` or
/// `enable_all`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokio;

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
