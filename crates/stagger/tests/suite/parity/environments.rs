use core::time::Duration;

use futures_lite::future::yield_now;
use stagger::testing::VirtualClock;
use stagger::time::Tokio;

use super::drivers::Environment;

impl Environment for VirtualClock {
    type Timer = Self;

    fn timer(&self) -> Self {
        self.clone()
    }

    async fn elapse(&self, length: Duration) {
        if !length.is_zero() {
            self.advance(length);
            yield_now().await;
        }
    }
}

/// Tokio's timer in a runtime with paused time.
pub(crate) struct PausedTokio;

impl Environment for PausedTokio {
    type Timer = Tokio;

    fn timer(&self) -> Tokio {
        Tokio
    }

    async fn elapse(&self, length: Duration) {
        if !length.is_zero() {
            tokio::time::sleep(length).await;
        }
    }
}
