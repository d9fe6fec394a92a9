use core::error::Error as _;

use stagger::{Outcome, ServerHint, classify};
use tonic::Status;
use tonic_types::StatusExt as _;

use crate::grpc::{outcome_by, pushback};
use crate::hint::LONGEST_WAIT;

/// Classifies a status of tonic, given that the method is idempotent. It is the rule for calls without a
/// [layer](crate::tower::RetryLayer):
///
/// ```
/// use stagger::{Policy, Retrier, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(100), secs(5)).max_attempts(4));
///
/// let retrier = Retrier::new(POLICY).classify(stagger_http::grpc::tonic);
/// # let _ = retrier;
/// ```
///
/// | status | outcome |
/// |---|---|
/// | sent by the server | by its code: [`classify::grpc`], with its hint |
/// | made by the client, because of an I/O error | by [`classify::io`]: a lost or refused connection is transient |
/// | made by the client, `CANCELLED` | transient: a timeout of the channel, or a connection that was closed |
/// | made by the client, with another cause | by its code |
///
/// The hint is the pushback (`grpc-retry-pushback-ms`) or else the `RetryInfo` in the details, as Google's APIs send
/// it; both are lower bounds. A pushback that forbids retries ends the call. A `RetryInfo` of more than
/// [366 days](crate::hint::LONGEST_WAIT) is ignored.
#[must_use]
pub fn tonic(status: &Status) -> Outcome {
    let code = status.code() as u32;
    if let Some(cause) = status.source() {
        return match classify::chain(cause) {
            Some(outcome) => outcome,
            None if status.code() == tonic::Code::Cancelled => Outcome::TRANSIENT,
            None => classify::grpc(code),
        };
    }
    let hint = match pushback(status.metadata().as_ref()) {
        Some(hint) => Some(hint),
        None => retry_info(status),
    };
    outcome_by(classify::grpc(code), hint)
}

/// Returns the delay in the details of a status. A negative one is read as zero, which is no bound.
fn retry_info(status: &Status) -> Option<ServerHint> {
    let delay = status.get_details_retry_info()?.retry_delay?;
    if delay.is_zero() || delay > LONGEST_WAIT { None } else { Some(ServerHint::AtLeast(delay)) }
}

#[cfg(test)]
mod tests {
    use core::fmt;
    use core::time::Duration;
    use std::io;
    use std::sync::Arc;

    use stagger::FailureKind;
    use tonic::Code;
    use tonic::metadata::MetadataMap;
    use tonic_types::ErrorDetails;

    use super::*;

    const DELAY: Duration = Duration::from_millis(2500);

    fn with_retry_info(code: Code) -> Status {
        Status::with_error_details(code, "later", ErrorDetails::with_retry_info(Some(DELAY)))
    }

    #[test]
    fn a_status_of_the_server_is_classified_by_its_code() {
        for code in (0..17).map(Code::from_i32) {
            let want = match classify::grpc(code as u32) {
                // By a proxy or the server, not by this client.
                Outcome::Cancelled => Outcome::Permanent,
                outcome => outcome,
            };
            assert_eq!(tonic(&Status::new(code, "")), want, "{code:?}");
        }
    }

    #[test]
    fn a_status_of_the_client_is_classified_by_its_cause_and_else_by_its_code() {
        let caused = |code, kind| Status::new(code, "").set_source(Arc::new(io::Error::from(kind))).clone();
        for (code, kind, want) in [
            (Code::Unknown, io::ErrorKind::ConnectionReset, Outcome::TRANSIENT),
            (Code::Cancelled, io::ErrorKind::ConnectionReset, Outcome::TRANSIENT),
            (Code::Unavailable, io::ErrorKind::PermissionDenied, Outcome::Permanent),
        ] {
            assert_eq!(tonic(&caused(code, kind)), want, "{code:?} {kind:?}");
        }
        // Of these nothing is known but that the client made the status, as at a timeout of the channel.
        for (code, want) in [
            (Code::Cancelled, Outcome::TRANSIENT),
            (Code::Unavailable, Outcome::TRANSIENT),
            (Code::Unknown, Outcome::Permanent),
        ] {
            let status = Status::new(code, "").set_source(Arc::new(fmt::Error)).clone();
            assert_eq!(tonic(&status), want, "{code:?}");
        }
    }

    #[test]
    fn retry_info_is_a_hint_and_does_not_change_the_kind() {
        let hint = Some(ServerHint::AtLeast(DELAY));
        assert_eq!(tonic(&with_retry_info(Code::ResourceExhausted)), Outcome::throttled(hint));
        let transient = Outcome::Failed { kind: FailureKind::Transient, hint };
        assert_eq!(tonic(&with_retry_info(Code::Unavailable)), transient);
        assert_eq!(tonic(&with_retry_info(Code::InvalidArgument)), Outcome::Permanent);
    }

    #[test]
    fn a_retry_delay_that_no_server_can_mean_is_no_hint() {
        for seconds in [LONGEST_WAIT.as_secs() + 1, 1_795_255_202, 1_795_255_202_000] {
            let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(seconds)));
            let status = Status::with_error_details(Code::Unavailable, "later", details);
            assert_eq!(tonic(&status), Outcome::TRANSIENT, "{seconds}");
        }
    }

    #[test]
    fn a_pushback_outweighs_retry_info() {
        for (value, hint) in [("70", ServerHint::AtLeast(Duration::from_millis(70))), ("-1", ServerHint::DoNotRetry)] {
            let mut status = with_retry_info(Code::ResourceExhausted);
            status.metadata_mut().insert("grpc-retry-pushback-ms", value.parse().unwrap());
            assert_eq!(tonic(&status), Outcome::throttled(Some(hint)), "{value}");
        }
    }

    #[test]
    fn malformed_details_are_no_hint() {
        for length in 0..64 {
            let details = vec![0xff; length].into();
            let status = Status::with_details_and_metadata(Code::Unavailable, "", details, MetadataMap::new());
            assert_eq!(tonic(&status), Outcome::TRANSIENT, "{length}");
        }
    }

    #[test]
    fn a_negative_retry_delay_is_no_hint() {
        // google.rpc.Status { details: [Any { RetryInfo { Duration { seconds: -5 } } }] } on the wire.
        let seconds = [0x08, 0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let retry_info = [&[0x0a, 11][..], &seconds].concat();
        let url = b"type.googleapis.com/google.rpc.RetryInfo";
        let any = [&[0x0a, url.len() as u8][..], url, &[0x12, 13], &retry_info].concat();
        let details = [&[0x1a, any.len() as u8][..], &any].concat();
        let status = Status::with_details(Code::Unavailable, "", details.into());
        assert_eq!(tonic(&status), Outcome::TRANSIENT);
    }
}
