use http::{Method, StatusCode};
use stagger::Attempt;

/// The span of an attempt, for traces, with the attributes of OpenTelemetry's semantic conventions for HTTP clients.
/// Without the feature `tracing` it is nothing.
///
/// It begins with its attempt and ends when the attempt does or is dropped, before the backoff.
#[derive(Debug, Default)]
pub(crate) struct AttemptSpan {
    #[cfg(feature = "tracing")]
    span: Option<tracing::Span>,
    /// What the attempt before it ended with.
    #[cfg(feature = "tracing")]
    cause: Option<ErrorType>,
}

/// Why an attempt has failed, as `error.type` has it.
#[cfg(feature = "tracing")]
#[derive(Clone, Copy, Debug)]
enum ErrorType {
    Status(StatusCode),
    Timeout,
    /// A failure of the transport. Its type is that of the client below.
    Other,
}

#[cfg(feature = "tracing")]
impl ErrorType {
    fn as_str(&self) -> &str {
        match self {
            Self::Status(status) => status.as_str(),
            Self::Timeout => "timeout",
            Self::Other => "_OTHER",
        }
    }
}

#[cfg(feature = "tracing")]
impl AttemptSpan {
    /// Starts the span of an attempt.
    pub(crate) fn begin(&mut self, method: &Method, host: Option<&str>, attempt: Attempt) {
        use tracing::field::Empty;

        let span = tracing::info_span!(
            target: "stagger_http",
            "HTTP attempt",
            otel.kind = "client",
            otel.name = method.as_str(),
            otel.status_code = Empty,
            http.request.method = method.as_str(),
            server.address = host,
            "http.request.resend_count" = Empty,
            "http.response.status_code" = Empty,
            "error.type" = Empty,
            "stagger.attempt.cause" = Empty,
        );
        if attempt.number > 1 {
            span.record("http.request.resend_count", attempt.number - 1);
        }
        if let Some(cause) = self.cause.take() {
            span.record("stagger.attempt.cause", cause.as_str());
        }
        self.span = Some(span);
    }

    /// Runs a part of the attempt within its span.
    pub(crate) fn enter<T>(&self, run: impl FnOnce() -> T) -> T {
        match &self.span {
            Some(span) => span.in_scope(run),
            None => run(),
        }
    }

    /// Ends the span with a response.
    pub(crate) fn answered(&mut self, status: StatusCode) {
        if let Some(span) = &self.span {
            span.record("http.response.status_code", status.as_u16());
        }
        let has_failed = status.is_client_error() || status.is_server_error();
        self.end(if has_failed { Some(ErrorType::Status(status)) } else { None });
    }

    /// Ends the span of an attempt that failed without a response.
    pub(crate) fn failed(&mut self) {
        self.end(Some(ErrorType::Other));
    }

    /// Ends the span of an attempt that took too long.
    pub(crate) fn timed_out(&mut self) {
        self.end(Some(ErrorType::Timeout));
    }

    fn end(&mut self, cause: Option<ErrorType>) {
        let span = self.span.take();
        if let (Some(span), Some(cause)) = (span, cause) {
            span.record("error.type", cause.as_str());
            span.record("otel.status_code", "ERROR");
        }
        self.cause = cause;
    }
}

#[cfg(not(feature = "tracing"))]
#[expect(clippy::unused_self, reason = "the other half has state")]
impl AttemptSpan {
    pub(crate) const fn begin(&mut self, _: &Method, _: Option<&str>, _: Attempt) {}

    pub(crate) fn enter<T>(&self, run: impl FnOnce() -> T) -> T {
        run()
    }

    pub(crate) const fn answered(&mut self, _: StatusCode) {}

    pub(crate) const fn failed(&mut self) {}

    pub(crate) const fn timed_out(&mut self) {}
}
