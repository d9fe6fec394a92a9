use core::fmt;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use stagger_terminal::output::error::CliError;

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
        let busy = (self.status == StatusCode::SERVICE_UNAVAILABLE).then_some([(RETRY_AFTER, "1")]);
        (self.status, busy.into_iter().next(), Json(json!({ "error": self.text }))).into_response()
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
