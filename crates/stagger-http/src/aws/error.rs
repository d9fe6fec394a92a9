use std::time::SystemTime;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::http::Headers;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use stagger::{FailureKind, Outcome, ServerHint};

use crate::request::Idempotency;
use crate::{hint, status};

/// The codes with which services of AWS ask for less load.
const THROTTLED: [&str; 14] = [
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
];

/// Classifies the error of an operation by its code, its [status](crate::status) and its [server hint](crate::hint),
/// for `Retrier::classify`. Disable the SDK's own retries then, with `RetryConfig::disabled()`.
///
/// It takes the operation for idempotent. Most of AWS are, by a token that the SDK adds; for one that is not, such as
/// sending a message, [`Retries::idempotent_if`](super::Retries::idempotent_if) knows what was not processed.
///
/// ```
/// use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
/// use aws_smithy_runtime_api::client::result::SdkError;
/// use aws_smithy_types::{body::SdkBody, error::ErrorMetadata};
/// use stagger::Outcome;
/// use stagger_http::aws::outcome;
///
/// let response = HttpResponse::new(503.try_into()?, SdkBody::empty());
/// let error = SdkError::service_error(ErrorMetadata::builder().code("SlowDown").build(), response);
/// assert_eq!(outcome(&error), Outcome::throttled(None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn outcome<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Outcome {
    let (code, response) = match error {
        SdkError::ServiceError(error) => (error.err().code(), error.raw()),
        SdkError::TimeoutError(_) | SdkError::ResponseError(_) => return Outcome::TRANSIENT,
        SdkError::DispatchFailure(error) if error.is_io() || error.is_timeout() => return Outcome::TRANSIENT,
        _ => return Outcome::Permanent,
    };
    let hint = server_hint(response.headers());
    match code {
        Some(code) if THROTTLED.contains(&code) => Outcome::throttled(hint),
        Some("RequestTimeout" | "RequestTimeoutException") => Outcome::Failed { kind: FailureKind::Transient, hint },
        _ => by_status(response),
    }
}

/// Classifies a response by its status alone.
pub(super) fn by_status(response: &HttpResponse) -> Outcome {
    let hint = server_hint(response.headers());
    match StatusCode::from_u16(response.status().as_u16()) {
        Ok(status) => status::outcome(status, Idempotency::Declared, hint),
        Err(_) => Outcome::Permanent,
    }
}

/// Returns the server hint of a response, whose headers are in the SDK's own type.
pub(super) fn server_hint(headers: &Headers) -> Option<ServerHint> {
    let pairs = headers
        .iter()
        .filter_map(|(name, value)| Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?)));
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(name, value);
    }
    hint::server_hint(&map, SystemTime::now)
}
