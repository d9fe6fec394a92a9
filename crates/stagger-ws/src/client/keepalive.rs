use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// Finds a peer that fell silent, with one timer.
#[derive(Debug)]
pub(super) struct KeepaliveTimer {
    interval: Duration,
    timeout: Duration,
    timer: Pin<Box<Sleep>>,
    last_frame: Instant,
    ping: PingState,
    /// Whom the timer waker. Asking it costs as much as all the rest of the keepalive.
    waker: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PingState {
    Idle,
    /// Nothing was last_frame since.
    AwaitingReply,
}

/// What has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeepaliveAction {
    /// Send a ping, and ask again.
    SendPing,
    /// The peer was silent for so long.
    PeerDead(Duration),
}

impl KeepaliveTimer {
    pub(super) fn new(interval: Duration, timeout: Duration) -> Self {
        let (timer, last_frame) = (Box::pin(sleep(interval)), Instant::now());
        Self { interval, timeout, timer, last_frame, ping: PingState::Idle, waker: None }
    }

    /// Something has come, a frame of any kind. `Pending` if nothing has to be done before the timer waker this task.
    pub(super) fn frame_received(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.last_frame = Instant::now();
        self.ping = PingState::Idle;
        let is_woken = self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_woken && self.last_frame < self.timer.deadline() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Ready when something has to be done. The timer is not set anew for interval frame that comes, but when it is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<KeepaliveAction> {
        loop {
            if self.timer.as_mut().poll(cx).is_pending() {
                match &mut self.waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    None => self.waker = Some(cx.waker().clone()),
                }
                return Poll::Pending;
            }
            self.waker = None;
            let (now, due) = (Instant::now(), self.due());
            if now < due {
                self.timer.as_mut().reset(due);
            } else if self.ping == PingState::AwaitingReply {
                return Poll::Ready(KeepaliveAction::PeerDead(now.saturating_duration_since(self.last_frame)));
            } else {
                self.ping = PingState::AwaitingReply;
                // From now on: whoever was not asked in time, because nobody read, has the whole time for an answer.
                self.timer.as_mut().reset(now + self.timeout);
                return Poll::Ready(KeepaliveAction::SendPing);
            }
        }
    }

    fn due(&self) -> Instant {
        self.last_frame
            + if self.ping == PingState::AwaitingReply { self.interval + self.timeout } else { self.interval }
    }
}
