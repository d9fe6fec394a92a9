use core::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::Mutex;

use stagger::time::{Clock as _, Tokio};
use tokio::sync::{Notify, watch};

use super::plan::Drain;
use super::return_schedule::ReturnSchedule;
use crate::advice::ReconnectAdvice;
use crate::server::message::SocketMessage;
use crate::sync::lock;

/// The close code "Service Restart" of the IANA registry.
const SERVICE_RESTART: u16 = 1012;

/// A drain's request to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseRequest {
    /// The close code: 1012, service restart.
    pub code: u16,
    /// When the client should reconnect.
    pub advice: ReconnectAdvice,
}

impl CloseRequest {
    pub(in crate::server) const fn new(advice: ReconnectAdvice) -> Self {
        Self { code: SERVICE_RESTART, advice }
    }

    /// Creates the close frame.
    #[must_use]
    pub fn to_message<M: SocketMessage>(&self) -> M {
        M::close(self.code, self.advice.to_reason())
    }
}

/// The state of a drain in progress.
pub(in crate::server) struct DrainState {
    schedule: Mutex<ReturnSchedule>,
    pub(in crate::server) total: usize,
    pub(in crate::server) notified: AtomicUsize,
    pub(in crate::server) is_closing_remaining: AtomicBool,
    pub(in crate::server) close_now: Notify,
    pub(in crate::server) done: watch::Sender<bool>,
}

impl DrainState {
    pub(in crate::server) fn new(plan: &Drain, total: usize) -> Self {
        Self {
            schedule: Mutex::new(plan.return_schedule(total, Tokio.now())),
            total,
            notified: AtomicUsize::new(0),
            is_closing_remaining: AtomicBool::new(false),
            close_now: Notify::new(),
            done: watch::Sender::new(false),
        }
    }

    /// Reserves return times for the next `count` clients.
    pub(in crate::server) fn reserve(&self, count: usize) -> ReconnectAdvice {
        lock(&self.schedule).reserve(count, Tokio.now())
    }

    pub(in crate::server) async fn done(&self) {
        // `self` owns the sender, so it is not closed.
        let _ = self.done.subscribe().wait_for(|done| *done).await;
    }
}
