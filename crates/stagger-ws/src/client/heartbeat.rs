use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// Finds a peer that fell silent, with one timer.
#[derive(Debug)]
pub(super) struct Heartbeat {
    every: Duration,
    dead_after: Duration,
    timer: Pin<Box<Sleep>>,
    heard: Instant,
    pinged: Pinged,
    /// Whom the timer wakes. Asking it costs as much as all the rest of the heartbeat.
    wakes: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pinged {
    No,
    /// Nothing was heard since.
    Yes,
}

/// What has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    /// Send a ping, and ask again.
    Ping,
    /// The peer was silent for so long.
    Dead(Duration),
}

impl Heartbeat {
    pub(super) fn new(every: Duration, dead_after: Duration) -> Self {
        let (timer, heard) = (Box::pin(sleep(every)), Instant::now());
        Self { every, dead_after, timer, heard, pinged: Pinged::No, wakes: None }
    }

    /// Something has come, a frame of any kind. `Pending` if nothing has to be done before the timer wakes this task.
    pub(super) fn heard(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.heard = Instant::now();
        self.pinged = Pinged::No;
        let is_woken = self.wakes.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_woken && self.heard < self.timer.deadline() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Ready when something has to be done. The timer is not set anew for every frame that comes, but when it is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Beat> {
        loop {
            if self.timer.as_mut().poll(cx).is_pending() {
                match &mut self.wakes {
                    Some(waker) => waker.clone_from(cx.waker()),
                    None => self.wakes = Some(cx.waker().clone()),
                }
                return Poll::Pending;
            }
            self.wakes = None;
            let (now, due) = (Instant::now(), self.due());
            if now < due {
                self.timer.as_mut().reset(due);
            } else if self.pinged == Pinged::Yes {
                return Poll::Ready(Beat::Dead(now.saturating_duration_since(self.heard)));
            } else {
                self.pinged = Pinged::Yes;
                // From now on: whoever was not asked in time, because nobody read, has the whole time for an answer.
                self.timer.as_mut().reset(now + self.dead_after);
                return Poll::Ready(Beat::Ping);
            }
        }
    }

    fn due(&self) -> Instant {
        self.heard + if self.pinged == Pinged::Yes { self.every + self.dead_after } else { self.every }
    }
}
