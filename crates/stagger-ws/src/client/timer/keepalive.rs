use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use crate::instant::saturating_add;

/// Detects an unresponsive peer, with one timer.
#[derive(Debug)]
pub(in crate::client) struct KeepaliveTimer {
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
pub(in crate::client) enum KeepaliveAction {
    /// Send a ping, then poll again.
    SendPing,
    /// The peer has been silent for this long.
    PeerDead(Duration),
}

impl KeepaliveTimer {
    pub(in crate::client) fn new(interval: Duration, timeout: Duration) -> Self {
        let (timer, last_frame) = (Box::pin(sleep(interval)), Instant::now());
        Self { interval, timeout, timer, last_frame, ping: PingState::Idle, waker: None }
    }

    /// Records that a frame of any kind was received. `Pending` if the timer wakes this task before anything is due.
    pub(in crate::client) fn frame_received(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.last_frame = Instant::now();
        self.ping = PingState::Idle;
        let is_woken = self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_woken && self.last_frame < self.timer.deadline() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Polls for the next action. The timer is not reset for each frame, but when it fires.
    pub(in crate::client) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<KeepaliveAction> {
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
