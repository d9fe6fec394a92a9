use core::time::Duration;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use stagger::{FailureKind, Outcome, ServerHint};

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

/// By code, status and `x-amz-retry-after`, given that the operation is idempotent.
pub(crate) fn aws<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Outcome {
    let (code, response) = match error {
        SdkError::ServiceError(error) => (error.err().code(), error.raw()),
        SdkError::TimeoutError(_) | SdkError::ResponseError(_) => return Outcome::TRANSIENT,
        SdkError::DispatchFailure(error) if error.is_io() || error.is_timeout() => return Outcome::TRANSIENT,
        _ => return Outcome::Permanent,
    };
    let kind = match (code, response.status().as_u16()) {
        (Some(code), _) if THROTTLED.contains(&code) => FailureKind::Throttled,
        (_, 429) => FailureKind::Throttled,
        (Some("RequestTimeout" | "RequestTimeoutException"), _) | (_, 500 | 502..=504) => FailureKind::Transient,
        _ => return Outcome::Permanent,
    };
    let millis = response.headers().get("x-amz-retry-after").and_then(|value| value.parse().ok());
    Outcome::Failed { kind, hint: millis.map(|millis| ServerHint::AtLeast(Duration::from_millis(millis))) }
}
