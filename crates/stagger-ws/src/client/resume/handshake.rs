use core::mem::size_of;
use core::time::Duration;
use std::collections::VecDeque;

use futures_util::{SinkExt, StreamExt};
use http::Response;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::protocol::{ResumeStatus, SharedResume};
use crate::client::connection::Connection;
use crate::client::failure::connection_error::ConnectionError;
use crate::sync::lock;

/// Runs a [`Resume`](crate::Resume) on each new connection, for the connection task.
pub(in crate::client) struct ResumeHandshake {
    resume: SharedResume,
    /// The maximum duration of the negotiation.
    timeout_after: Duration,
    /// The most that is buffered during the negotiation. More cannot be left unread, since the answer may come after it.
    max_bytes: usize,
    /// Messages received during the negotiation, which are still to be observed and delivered.
    buffered: VecDeque<Message>,
}

impl ResumeHandshake {
    pub(in crate::client) fn new(resume: SharedResume, timeout_after: Duration, max_bytes: usize) -> Self {
        Self { resume, timeout_after, max_bytes, buffered: VecDeque::new() }
    }

    /// Negotiates until the server has accepted or rejected the position. Returns whether it resumed, or `None` if the
    /// connection ended.
    pub(in crate::client) async fn negotiate(
        &mut self,
        connection: &mut Connection<'_>,
        response: &Response<()>,
    ) -> Option<bool> {
        self.buffered.clear();
        let timeout_after = self.timeout_after;
        let cause = match timeout(timeout_after, self.exchange(connection, response)).await {
            Ok(Some(Ok(ResumeStatus::Rejected))) => ConnectionError::ResumeRejected,
            Ok(Some(Ok(status))) => return Some(status == ResumeStatus::Resumed),
            Ok(Some(Err(cause))) => cause,
            Ok(None) => return None,
            Err(_) => ConnectionError::ConnectTimeout { after: timeout_after },
        };
        connection.record_end(cause);
        None
    }

    /// Returns the final status, or `None` if the connection ended.
    async fn exchange(
        &mut self,
        connection: &mut Connection<'_>,
        response: &Response<()>,
    ) -> Option<Result<ResumeStatus, ConnectionError>> {
        let mut buffered_bytes = 0_usize;
        let mut status = lock(&self.resume).on_upgrade(response);
        loop {
            match status {
                ResumeStatus::Pending => {}
                // If sending fails, the reading half reports the reason.
                ResumeStatus::Send(message) => drop(connection.send(message).await),
                decided => return Some(Ok(decided)),
            }
            if buffered_bytes > self.max_bytes {
                return Some(Err(ConnectionError::ResumeTooLong { max_bytes: self.max_bytes }));
            }
            let message = connection.next().await?.ok()?;
            // An empty message takes up memory, too.
            buffered_bytes = buffered_bytes.saturating_add(message.len()).saturating_add(size_of::<Message>());
            status = lock(&self.resume).on_handshake_message(&message);
            self.buffered.push_back(message);
        }
    }

    /// Returns the messages received during the negotiation.
    pub(in crate::client) fn buffered(&self) -> impl Iterator<Item = &Message> {
        self.buffered.iter()
    }

    /// Returns the next of these messages.
    pub(in crate::client) fn next_buffered(&mut self) -> Option<Message> {
        self.buffered.pop_front()
    }

    pub(in crate::client) fn observe(&self, message: &Message) {
        lock(&self.resume).observe(message);
    }
}
