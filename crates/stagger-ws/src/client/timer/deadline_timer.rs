use core::pin::Pin;
use core::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

/// A timer for a deadline that moves. Holds a timer only while there is a deadline.
#[derive(Debug, Default)]
pub(in crate::client) struct DeadlineTimer(Option<Pin<Box<Sleep>>>);

impl DeadlineTimer {
    /// Polls until the deadline has passed; never ready if `until` is `None`.
    pub(in crate::client) fn poll(&mut self, until: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(until) = until else {
            self.0 = None;
            return Poll::Pending;
        };
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        sleep.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use core::task::Waker;
    use core::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_timer_is_held_only_while_there_is_a_deadline() {
        let mut timer = DeadlineTimer::default();
        let (mut cx, until) = (Context::from_waker(Waker::noop()), Instant::now() + Duration::from_secs(1));
        for (until, is_held) in [(None, false), (Some(until), true), (None, false)] {
            assert!(timer.poll(until, &mut cx).is_pending());
            assert_eq!(timer.0.is_some(), is_held, "{until:?}");
        }
    }
}
