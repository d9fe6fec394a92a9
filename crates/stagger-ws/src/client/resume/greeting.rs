use core::time::Duration;
use std::collections::VecDeque;

use futures_util::{SinkExt, StreamExt};
use http::Response;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::{ResumeStatus, SharedResume};
use crate::client::{Connection, ConnectionError};

/// What the task that owns the connection keeps of a [`Resume`](super::Resume).
pub(in crate::client) struct Resuming {
    resume: SharedResume,
    /// How long it may take until it is decided.
    longest: Duration,
    /// What came until then, which is still to be observed and shown.
    greeting: VecDeque<Message>,
}

impl Resuming {
    pub(in crate::client) fn new(resume: SharedResume, longest: Duration) -> Self {
        Self { resume, longest, greeting: VecDeque::new() }
    }

    /// Has the first words of a connection judged: whether the server goes on. `None` if they were its last.
    pub(in crate::client) async fn greet(
        &mut self,
        link: &mut Connection<'_>,
        response: &Response<()>,
    ) -> Option<bool> {
        self.greeting.clear();
        let longest = self.longest;
        let cause = match timeout(longest, self.exchange(link, response)).await {
            Ok(Some(ResumeStatus::Rejected)) => ConnectionError::ResumeRejected,
            Ok(welcome) => return Some(welcome? == ResumeStatus::Resumed),
            Err(_) => ConnectionError::ConnectTimeout { after: longest },
        };
        link.over(cause);
        None
    }

    /// What was decided; `None` if the connection has ended.
    async fn exchange(&mut self, link: &mut Connection<'_>, response: &Response<()>) -> Option<ResumeStatus> {
        let mut welcome = self.resume.lock().on_upgrade(response);
        loop {
            match welcome {
                ResumeStatus::Pending => {}
                // If it cannot be sent, the reading half says why.
                ResumeStatus::Send(message) => drop(link.send(message).await),
                decided => return Some(decided),
            }
            let message = link.next().await?.ok()?;
            welcome = self.resume.lock().on_open(&message);
            self.greeting.push_back(message);
        }
    }

    /// The messages that came before it was decided.
    pub(in crate::client) fn greeting(&self) -> impl Iterator<Item = &Message> {
        self.greeting.iter()
    }

    /// The next of them.
    pub(in crate::client) fn next(&mut self) -> Option<Message> {
        self.greeting.pop_front()
    }

    pub(in crate::client) fn observe(&self, message: &Message) {
        self.resume.lock().observe(message);
    }
}
