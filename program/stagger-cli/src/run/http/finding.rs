use core::time::Duration;
use std::time::SystemTime;

use http::StatusCode;
use stagger_core::{FailureKind, Outcome, ServerHint};
use stagger_http::{Idempotency, RequestProgress, hint, status};

use super::client::HttpClient;
use super::response::Response;
use crate::run::status::{AttemptStatus, NoRetryReason};

/// What is known about an attempt from HTTP: the response, and how the client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// How the attempt ended: a client that succeeds in spite of a failed response has failed.
    pub(crate) status: AttemptStatus,
    /// The status of the response.
    pub(crate) http_status: Option<StatusCode>,
    /// `None` if HTTP says nothing.
    pub(crate) verdict: Option<Verdict>,
    /// The delay that the server asked for.
    pub(crate) retry_after: Option<Duration>,
    /// Whether the server forbids a retry.
    pub(crate) forbids_retry: bool,
    /// Whether the request may be sent again.
    pub(crate) is_safe: bool,
}

/// Whether a 403 or 413 that announces when to return is a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnnouncedWaits {
    Follow,
    Ignore,
}

/// Whether another attempt can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Retryable(FailureKind),
    Permanent(NoRetryReason),
}

/// The exit code of an attempt that got a failed response, with any client: that of `curl --fail`.
const FAILED_RESPONSE_CODE: u8 = 22;

impl Finding {
    /// Draws the conclusion from how the command ended and the response that it received. `client` is that of `--http`;
    /// without it, nothing is known of the request, which is taken to be repeatable like any other command.
    pub(crate) fn new(
        client: Option<&HttpClient>,
        announced: AnnouncedWaits,
        ended: AttemptStatus,
        response: Option<&Response>,
    ) -> Self {
        let idempotency = client.map_or(Idempotency::Declared, HttpClient::idempotency);
        let http_status = response.and_then(|response| response.status);
        let failed = match http_status {
            Some(status) if status.as_u16() >= 400 => response,
            _ => None,
        };
        // A redirect and a success are no failures, so what their headers ask for is meant for others.
        let hinting = if http_status.is_none() { response } else { failed };
        let hint = hinting.and_then(|response| hint::server_hint(&response.headers, SystemTime::now));
        let status = match ended {
            AttemptStatus::Exit(0) if client.is_some() && failed.is_some() => AttemptStatus::Exit(FAILED_RESPONSE_CODE),
            ended => ended,
        };
        let progress = match (failed, client, ended) {
            (_, _, AttemptStatus::NotRun(_)) => RequestProgress::NotSent,
            (Some(response), ..) if is_rejected_unread(response) => RequestProgress::NotProcessed,
            (None, Some(client), AttemptStatus::Exit(code)) if response.is_none() && client.proves_not_sent(code) => {
                RequestProgress::NotSent
            }
            _ => RequestProgress::MaybeProcessed,
        };
        let verdict = match (failed, http_status, client, ended) {
            (Some(response), Some(code), ..) => {
                let headers = &response.headers;
                let is_announced = status::announced_wait(code, headers, hint).is_some();
                Some(match (status::response_outcome(code, headers, idempotency, hint), announced) {
                    (_, AnnouncedWaits::Follow) if is_announced => Verdict::Retryable(FailureKind::Throttled),
                    (Outcome::Failed { kind, .. }, _) => Verdict::Retryable(kind),
                    _ if is_announced => Verdict::Permanent(NoRetryReason::AnnouncedWait),
                    _ => Verdict::Permanent(NoRetryReason::HttpStatus),
                })
            }
            (None, _, Some(client), AttemptStatus::Exit(code @ 1..)) => Some(if client.is_transient(code) {
                Verdict::Retryable(FailureKind::Transient)
            } else {
                Verdict::Permanent(NoRetryReason::HttpExit)
            }),
            _ => None,
        };
        Self {
            status,
            http_status,
            verdict,
            retry_after: match hint {
                Some(ServerHint::AtLeast(after) | ServerHint::Reserved(after)) => Some(after),
                _ => None,
            },
            forbids_retry: hint == Some(ServerHint::DoNotRetry),
            is_safe: idempotency.allows_retry(progress),
        }
    }
}

/// Returns whether admission control rejected the request before anything read it. After a redirect, another server may
/// have read it.
fn is_rejected_unread(response: &Response) -> bool {
    let rejects = matches!(response.status, Some(StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS));
    rejects && response.hops == 1 && hint::reservation(&response.headers).is_some()
}
