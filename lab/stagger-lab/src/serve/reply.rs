//! Answers: a document, a failure, or events while something is simulated.

use core::convert::Infallible;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use serde_json::{Value, json};
use stagger_sim::Progress;
use stagger_terminal::output::error::CliError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::limits::MAX_SEND_TIME;

/// Why there is no answer: a status, and a sentence that says how to mend it.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    text: String,
}

impl Failure {
    pub(super) fn new(status: StatusCode, text: impl fmt::Display) -> Self {
        Self { status, text: text.to_string() }
    }

    /// Creates a failure for a request whose values are wrong.
    pub(super) fn wrong(text: impl fmt::Display) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, text)
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl From<CliError> for Failure {
    fn from(error: CliError) -> Self {
        Self::wrong(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let answer = (self.status, Json(json!({ "error": self.text })));
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => ([(RETRY_AFTER, "1")], answer).into_response(),
            _ => answer.into_response(),
        }
    }
}

/// A document as the response.
#[derive(Debug)]
pub(super) struct Json(pub(super) Value);

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json")], self.0.to_string()).into_response()
    }
}

/// Events that wait for the browser to read. A slow reader is backpressure.
const QUEUED: usize = 4;

/// Time between two events with the progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Where the events of a response go.
#[derive(Clone, Debug)]
pub(super) struct Events(Sender<Event>);

/// The page has gone.
#[derive(Debug)]
pub(super) struct Gone;

impl Events {
    /// Sends an event, when there is room for it.
    pub(super) async fn send(&self, name: &str, data: &Value) -> Result<(), Gone> {
        self.0.send(Event::default().event(name).data(data.to_string())).await.map_err(|_| Gone)
    }

    /// Sends the progress, from time to time, until `work` is done, and returns its result.
    pub(super) async fn with_progress<T>(
        &self,
        progress: &Arc<Progress>,
        work: impl Future<Output = T>,
    ) -> Result<T, Gone> {
        let mut tick = tokio::time::interval(PROGRESS_EVERY);
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                () = self.0.closed() => return Err(Gone),
                result = &mut work => return Ok(result),
                _ = tick.tick() => self.send("progress", &json!({ "ratio": progress.fraction() })).await?,
            }
        }
    }
}

/// Answers with the events that `work` sends: server-sent events, of which the last is `done`, or `failed` with the
/// reason. `work` is dropped when the page goes.
pub(super) fn answer_with_events<F>(work: impl FnOnce(Events) -> F) -> Response
where
    F: Future<Output = Result<Result<(), Failure>, Gone>> + Send + 'static,
{
    let (sender, receiver) = channel(QUEUED);
    let events = Events(sender);
    let work = work(events.clone());
    tokio::spawn(async move {
        let gone = events.0.clone();
        let send = async {
            match work.await? {
                Ok(()) => events.send("done", &json!({})).await,
                Err(failure) => events.send("failed", &json!({ "error": failure.text() })).await,
            }
        };
        tokio::select! {
            biased;
            // A page that goes while nothing is sent.
            () = gone.closed() => {}
            () = tokio::time::sleep(MAX_SEND_TIME) => {}
            _ = send => {}
        }
    });
    Sse::new(stream(receiver)).keep_alive(KeepAlive::default()).into_response()
}

fn stream(receiver: Receiver<Event>) -> impl Stream<Item = Result<Event, Infallible>> {
    futures_util::stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|event| (Ok(event), receiver))
    })
}
