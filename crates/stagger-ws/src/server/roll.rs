//! Who is here, and who has to be told when it is time to go.

use core::pin::pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use super::drain::{CloseRequest, Course};

/// The connections of a server.
#[derive(Default)]
pub(super) struct Roll {
    names: Mutex<Names>,
    begun: Notify,
    /// Those who are here, told or not.
    active: AtomicUsize,
    gone: Notify,
}

#[derive(Default)]
struct Names {
    /// Those who have not been told, the oldest first.
    untold: BTreeMap<u64, oneshot::Sender<CloseRequest>>,
    next: u64,
    course: Option<Arc<Course>>,
}

impl Roll {
    /// Writes a newcomer down, unless a drain has begun. Both under one lock, or somebody would never be told.
    pub(super) fn enter(&self) -> Result<(u64, oneshot::Receiver<CloseRequest>), Arc<Course>> {
        let mut names = self.names();
        if let Some(course) = &names.course {
            return Err(Arc::clone(course));
        }
        let id = names.next;
        names.next += 1;
        let (tell, told) = oneshot::channel();
        names.untold.insert(id, tell);
        self.active.fetch_add(1, Ordering::Relaxed);
        Ok((id, told))
    }

    pub(super) fn leave(&self, id: u64) {
        let untold = self.names().untold.remove(&id);
        drop(untold);
        if self.active.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.gone.notify_waiters();
        }
    }

    pub(super) fn course(&self) -> Option<Arc<Course>> {
        self.names().course.clone()
    }

    /// Begins a drain, or joins the one that has begun; `Ok` has begun it.
    pub(super) fn begin(&self, course: impl FnOnce(usize) -> Course) -> Result<Arc<Course>, Arc<Course>> {
        let mut names = self.names();
        if let Some(course) = &names.course {
            return Err(Arc::clone(course));
        }
        let course = Arc::new(course(names.untold.len()));
        names.course = Some(Arc::clone(&course));
        drop(names);
        self.begun.notify_waiters();
        Ok(course)
    }

    /// Waits until a drain has begun and is done.
    pub(super) async fn drained(&self) {
        let mut begun = pin!(self.begun.notified());
        loop {
            begun.as_mut().enable();
            if let Some(course) = self.course() {
                return course.done().await;
            }
            begun.as_mut().await;
            begun.set(self.begun.notified());
        }
    }

    /// Crosses off the next so many, who are to be told.
    pub(super) fn leaving(&self, most: usize) -> Vec<oneshot::Sender<CloseRequest>> {
        let mut names = self.names();
        let many = most.min(names.untold.len());
        core::iter::from_fn(|| names.untold.pop_first()).take(many).map(|(_, tell)| tell).collect()
    }

    /// Everybody was told.
    pub(super) fn is_empty(&self) -> bool {
        self.names().untold.is_empty()
    }

    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::Acquire)
    }

    pub(super) async fn everybody_gone(&self) {
        let mut gone = pin!(self.gone.notified());
        loop {
            // In this order, or the last one could leave unseen.
            gone.as_mut().enable();
            if self.active() == 0 {
                return;
            }
            gone.as_mut().await;
            gone.set(self.gone.notified());
        }
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        // Nothing in here can be half done: what panics is outside.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
