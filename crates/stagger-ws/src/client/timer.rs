//! The timers of an open connection.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::sync::saturating_add;

/// Detects an unresponsive peer, with one timer.
#[derive(Debug)]
pub(super) struct KeepaliveTimer {
    interval: Duration,
    timeout: Duration,
    timer: Pin<Box<Sleep>>,
    last_frame: Instant,
    ping: PingState,
    /// The waker that the timer wakes. Polling the timer costs as much as everything else here.
    waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PingState {
    Idle,
    /// A ping was sent, and no frame has been received since.
    AwaitingReply,
}

/// What the connection has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepaliveAction {
    /// Send a ping, then poll again.
    SendPing,
    /// The peer has been silent for this long.
    PeerDead(Duration),
}

impl KeepaliveTimer {
    pub(super) fn new(interval: Duration, timeout: Duration) -> Self {
        let (timer, last_frame) = (Box::pin(sleep(interval)), Instant::now());
        Self { interval, timeout, timer, last_frame, ping: PingState::Idle, waker: None }
    }

    /// Records that a frame of any kind was received. `Pending` if the timer wakes this task before anything is due.
    pub(super) fn frame_received(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.last_frame = Instant::now();
        self.ping = PingState::Idle;
        let is_woken = self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_woken && self.last_frame < self.timer.deadline() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Polls for the next action. The timer is not reset for each frame, but when it fires.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<KeepaliveAction> {
        loop {
            if self.timer.as_mut().poll(cx).is_pending() {
                match &mut self.waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    None => self.waker = Some(cx.waker().clone()),
                }
                return Poll::Pending;
            }
            let now = Instant::now();
            if self.ping == PingState::AwaitingReply {
                return Poll::Ready(KeepaliveAction::PeerDead(now.saturating_duration_since(self.last_frame)));
            }
            let due = saturating_add(self.last_frame, self.interval);
            if now < due {
                self.timer.as_mut().reset(due);
                continue;
            }
            self.ping = PingState::AwaitingReply;
            // Counted from now: a peer that was pinged late, because the connection was not polled, still gets the
            // whole timeout.
            self.timer.as_mut().reset(saturating_add(now, self.timeout));
            return Poll::Ready(KeepaliveAction::SendPing);
        }
    }
}

/// A timer for a deadline that moves. Holds a timer only while there is a deadline.
#[derive(Debug, Default)]
pub(super) struct DeadlineTimer(Option<Pin<Box<Sleep>>>);

impl DeadlineTimer {
    /// Polls until the deadline has passed; never ready if `until` is `None`.
    pub(super) fn poll(&mut self, until: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
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
