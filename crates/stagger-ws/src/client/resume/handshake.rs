use core::time::Duration;
use std::collections::VecDeque;

use futures_util::{SinkExt, StreamExt};
use http::Response;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::{ResumeStatus, SharedResume};
use crate::client::{Connection, ConnectionError};

/// What the task that owns the connection keeps of a [`Resume`](super::Resume).
pub(in crate::client) struct ResumeHandshake {
    resume: SharedResume,
    /// How long it may take until it is decided.
    timeout_after: Duration,
    /// What came until then, which is still to be observed and shown.
    buffered: VecDeque<Message>,
}

impl ResumeHandshake {
    pub(in crate::client) fn new(resume: SharedResume, timeout_after: Duration) -> Self {
        Self { resume, timeout_after, buffered: VecDeque::new() }
    }

    /// Has the first words of a connection judged: whether the server goes on. `None` if they were its last.
    pub(in crate::client) async fn negotiate(
        &mut self,
        connection: &mut Connection<'_>,
        response: &Response<()>,
    ) -> Option<bool> {
        self.buffered.clear();
        let timeout_after = self.timeout_after;
        let cause = match timeout(timeout_after, self.exchange(connection, response)).await {
            Ok(Some(ResumeStatus::Rejected)) => ConnectionError::ResumeRejected,
            Ok(status) => return Some(status? == ResumeStatus::Resumed),
            Err(_) => ConnectionError::ConnectTimeout { after: timeout_after },
        };
        connection.record_end(cause);
        None
    }

    /// What was decided; `None` if the connection has ended.
    async fn exchange(&mut self, connection: &mut Connection<'_>, response: &Response<()>) -> Option<ResumeStatus> {
        let mut status = self.resume.lock().on_upgrade(response);
        loop {
            match status {
                ResumeStatus::Pending => {}
                // If it cannot be sent, the reading half says why.
                ResumeStatus::Send(message) => drop(connection.send(message).await),
                decided => return Some(decided),
            }
            let message = connection.next().await?.ok()?;
            status = self.resume.lock().on_open(&message);
            self.buffered.push_back(message);
        }
    }

    /// The messages that came before it was decided.
    pub(in crate::client) fn buffered(&self) -> impl Iterator<Item = &Message> {
        self.buffered.iter()
    }

    /// The next of them.
    pub(in crate::client) fn next_buffered(&mut self) -> Option<Message> {
        self.buffered.pop_front()
    }

    pub(in crate::client) fn observe(&self, message: &Message) {
        self.resume.lock().observe(message);
    }
}
