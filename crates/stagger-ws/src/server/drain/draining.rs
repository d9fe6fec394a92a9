use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use stagger::{Clock as _, Tokio};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::Drain;
use super::line::Line;
use super::plan::Steps;
use crate::ReconnectAdvice;
use crate::server::SocketMessage;
use crate::server::sockets::Shared;

/// RFC 6455's registry: "Service Restart".
const SERVICE_RESTART: u16 = 1012;
/// How long beyond the time of the last close everybody may take to be gone: a task has to notice.
const NOTICE: Duration = Duration::from_secs(1);

/// What a connection that is to end is closed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseRequest {
    /// The code: 1012, service restart.
    pub code: u16,
    /// When the client is to come back.
    pub advice: ReconnectAdvice,
}

impl CloseRequest {
    /// The close frame.
    #[must_use]
    pub fn to_message<M: SocketMessage>(&self) -> M {
        M::close(self.code, self.advice.to_reason())
    }
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainProgress {
    /// Connections at its beginning.
    pub total: usize,
    /// Those that were told to leave.
    pub notified: usize,
    /// Those that are still there, told or not. What has not gone by the end is held by a task that nothing has woken.
    pub remaining: usize,
    /// It is over: nobody is left, or who is left has not gone in time.
    pub done: bool,
}

/// A drain underway, by itself: this is only a look at it, and a way to hurry it. Its clones are looks at the same.
#[derive(Clone)]
pub struct DrainHandle {
    course: Arc<Course>,
    shared: Arc<Shared>,
}

/// What there is of a drain while it goes.
pub(in crate::server) struct Course {
    line: Mutex<Line>,
    total: usize,
    told: AtomicUsize,
    is_hurried: AtomicBool,
    hurry: Notify,
    done: watch::Sender<bool>,
}

impl Course {
    pub(in crate::server) fn new(plan: &Drain, total: usize) -> Self {
        Self {
            line: Mutex::new(plan.line(total, Tokio.now())),
            total,
            told: AtomicUsize::new(0),
            is_hurried: AtomicBool::new(false),
            hurry: Notify::new(),
            done: watch::Sender::new(false),
        }
    }

    /// When the next so many come back.
    pub(in crate::server) fn join(&self, many: usize) -> ReconnectAdvice {
        // A line that a panic left behind is still a line.
        self.line.lock().unwrap_or_else(PoisonError::into_inner).join(many, Tokio.now())
    }

    pub(in crate::server) async fn done(&self) {
        // The sender is ours, so it is there.
        let _ = self.done.subscribe().wait_for(|done| *done).await;
    }
}

impl DrainHandle {
    pub(in crate::server) const fn new(course: Arc<Course>, shared: Arc<Shared>) -> Self {
        Self { course, shared }
    }

    pub(in crate::server) async fn run(self, plan: Drain) {
        let Self { course, shared } = &self;
        let (settings, roll) = (&shared.settings, &shared.roll);
        let Steps { size, every } = plan.steps(course.total);
        let mut next = Instant::now();
        #[cfg(feature = "tracing")]
        tracing::info!(target: "stagger", target_name = &*settings.name, total = course.total, "draining");
        loop {
            let most = if course.is_hurried.load(Ordering::Acquire) { usize::MAX } else { size };
            let leaving = roll.leaving(most);
            let closing = CloseRequest { code: SERVICE_RESTART, advice: course.join(leaving.len()) };
            course.told.fetch_add(leaving.len(), Ordering::Relaxed);
            for connection in leaving {
                // Who has gone meanwhile need not be told.
                let _ = connection.send(closing);
            }
            if roll.is_empty() {
                break;
            }
            // A machine that was late is not to make up for it by larger batches.
            next = next.max(Instant::now()) + every;
            tokio::select! {
                () = sleep_until(next) => {}
                () = course.hurry.notified() => {}
            }
        }
        let _ = timeout(settings.close_timeout.saturating_add(NOTICE), roll.everybody_gone()).await;
        #[cfg(feature = "tracing")]
        tracing::info!(target: "stagger", target_name = &*settings.name, left = roll.active(), "drained");
        course.done.send_replace(true);
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> DrainProgress {
        DrainProgress {
            total: self.course.total,
            notified: self.course.told.load(Ordering::Relaxed),
            remaining: self.shared.roll.active(),
            done: *self.course.done.borrow(),
        }
    }

    /// Tells all who are left at once. Each is still told to come back at its place in the line, so this is for the next
    /// server as gentle as the plan.
    pub fn close_remaining(&self) {
        self.course.is_hurried.store(true, Ordering::Release);
        self.course.hurry.notify_one();
    }

    /// Waits until it is over: everybody is gone, or has not gone within the time for a close, and a second.
    ///
    /// Cancel-safe; the drain goes on without it.
    pub async fn done(&self) -> DrainProgress {
        self.course.done().await;
        self.progress()
    }
}

impl fmt::Debug for DrainHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DrainHandle").field(&self.progress()).finish()
    }
}
