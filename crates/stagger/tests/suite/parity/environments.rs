use core::time::Duration;

use futures_lite::future::yield_now;
use stagger::testing::VirtualClock;
use stagger::time::Tokio;

use super::drivers::World;

impl World for VirtualClock {
    type Timer = Self;

    fn timer(&self) -> Self {
        self.clone()
    }

    async fn pass(&self, length: Duration) {
        if !length.is_zero() {
            self.advance(length);
            yield_now().await;
        }
    }
}

/// Tokio's timer, in a runtime whose time is paused.
pub(crate) struct Paused;

impl World for Paused {
    type Timer = Tokio;

    fn timer(&self) -> Tokio {
        Tokio
    }

    async fn pass(&self, length: Duration) {
        if !length.is_zero() {
            tokio::time::sleep(length).await;
        }
    }
}
