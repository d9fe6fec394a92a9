use core::pin::Pin;
use core::task::{Context, Poll};
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
        Self { every, dead_after, timer: Box::pin(sleep(every)), heard: Instant::now(), pinged: Pinged::No }
    }

    /// Something has come, a frame of any kind.
    pub(super) fn heard(&mut self) {
        self.heard = Instant::now();
        self.pinged = Pinged::No;
    }

    /// Ready when something has to be done. The timer is not set anew for every frame that comes, but when it is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Beat> {
        loop {
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
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
