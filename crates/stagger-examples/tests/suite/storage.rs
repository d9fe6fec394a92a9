//! The AWS SDK's errors, made by its own constructors, and stores of object_store and opendal in memory.

use core::cell::Cell;
use core::time::Duration;
use std::io::{Error as IoError, ErrorKind as IoErrorKind};
use std::sync::Arc;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::{ConnectorError, SdkError};
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::error::ErrorMetadata;
use object_store::{ObjectStoreExt as _, memory::InMemory};
use stagger::{FailureKind, Outcome, Policy, Retrier, ServerHint, budget, policy};

use super::recipes;

const POLICY: Policy = policy!(zero().max_attempts(5));

type AwsError = SdkError<ErrorMetadata, HttpResponse>;

/// Returns the error for a response of a service.
fn response(status: u16, code: Option<&str>, retry_after: Option<&str>) -> AwsError {
    let mut response = HttpResponse::new(status.try_into().unwrap(), SdkBody::empty());
    if let Some(millis) = retry_after {
        response.headers_mut().insert("x-amz-retry-after", millis.to_owned());
    }
    let metadata = code.into_iter().fold(ErrorMetadata::builder(), |metadata, code| metadata.code(code));
    SdkError::service_error(metadata.build(), response)
}

#[test]
fn a_response_of_aws_is_classified_by_code_status_and_hint() {
    let hint = Some(ServerHint::AtLeast(Duration::from_millis(1500)));
    for (status, code, retry_after, want) in [
        (400, Some("ThrottlingException"), None, Outcome::throttled(None)),
        (503, Some("SlowDown"), Some("1500"), Outcome::throttled(hint)),
        (429, None, None, Outcome::throttled(None)),
        (400, Some("RequestTimeout"), None, Outcome::TRANSIENT),
        (500, Some("InternalError"), None, Outcome::TRANSIENT),
        (503, None, Some("1500"), Outcome::Failed { kind: FailureKind::Transient, hint }),
        (503, None, Some("soon"), Outcome::TRANSIENT),
        (400, Some("ValidationException"), Some("1500"), Outcome::Permanent),
        (403, Some("AccessDenied"), None, Outcome::Permanent),
        (501, None, None, Outcome::Permanent),
    ] {
        assert_eq!(recipes::aws(&response(status, code, retry_after)), want, "{status} {code:?} {retry_after:?}");
    }
}

#[test]
fn a_request_to_aws_without_a_response_is_transient_if_the_network_failed() {
    let reset = || IoError::from(IoErrorKind::ConnectionReset).into();
    for (error, want) in [
        (AwsError::timeout_error("too slow"), Outcome::TRANSIENT),
        (AwsError::dispatch_failure(ConnectorError::io(reset())), Outcome::TRANSIENT),
        (AwsError::dispatch_failure(ConnectorError::timeout(reset())), Outcome::TRANSIENT),
        (AwsError::dispatch_failure(ConnectorError::user("no such scheme".into())), Outcome::Permanent),
        (AwsError::construction_failure("no bucket"), Outcome::Permanent),
    ] {
        assert_eq!(recipes::aws(&error), want, "{error:?}");
    }
}

#[test]
#[expect(clippy::result_large_err, reason = "the SDK returns errors of this size")]
fn clients_of_aws_share_a_budget() {
    // A retry costs five tokens.
    let tokens = Arc::new(budget::Tokens::builder().capacity(15).build().unwrap());
    let clients =
        [(); 2].map(|()| Retrier::new(POLICY).classify(recipes::aws::<ErrorMetadata>).shared_budget(tokens.clone()));
    let attempts = Cell::new(0);
    for client in clients.iter().cycle().take(10) {
        let call = || {
            attempts.set(attempts.get() + 1);
            Err::<(), _>(response(503, None, None))
        };
        client.blocking(call).unwrap_err();
    }
    assert_eq!(attempts.get(), 10 + 3, "ten calls, and the three retries of the budget");
}

#[tokio::test]
async fn errors_of_object_store_are_permanent_except_for_its_generic_one() {
    let missing = InMemory::new().get(&"nothing".into()).await.unwrap_err();
    assert_eq!(recipes::object_store(&missing), Outcome::Permanent, "{missing}");
    let generic = |source| object_store::Error::Generic { store: "S3", source };
    for (source, want) in [
        (IoError::from(IoErrorKind::ConnectionReset).into(), Outcome::TRANSIENT),
        (IoError::from(IoErrorKind::PermissionDenied).into(), Outcome::Permanent),
        ("server returned 503".into(), Outcome::TRANSIENT),
    ] {
        let error = generic(source);
        assert_eq!(recipes::object_store(&error), want, "{error}");
    }
}

#[tokio::test]
async fn errors_of_opendal_are_classified_by_its_own_marks() {
    let store = opendal::Operator::new(opendal::services::Memory::default()).unwrap();
    let missing = store.read("nothing").await.unwrap_err();
    assert_eq!(recipes::opendal(&missing), Outcome::Permanent, "{missing}");
    let error = |kind| opendal::Error::new(kind, "from a service");
    assert_eq!(recipes::opendal(&error(opendal::ErrorKind::Unexpected).set_temporary()), Outcome::TRANSIENT);
    assert_eq!(recipes::opendal(&error(opendal::ErrorKind::Unexpected)), Outcome::Permanent);
    let limited = error(opendal::ErrorKind::RateLimited).set_temporary();
    assert_eq!(recipes::opendal(&limited), Outcome::throttled(None));
}
