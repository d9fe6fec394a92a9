use core::time::Duration;

use http::HeaderMap;
use stagger::{FailureKind, Outcome, ServerHint};
use stagger_http::grpc::{self, Codes};

use super::{UNKNOWN, ms};

#[test]
fn a_status_is_read_from_headers_and_trailers_alike() {
    let outcome = |fields: &[(&'static str, &str)]| {
        grpc::outcome(&fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect())
    };
    for (fields, want) in [
        (&[][..], None),
        (&[("grpc-message", "busy")], None),
        (&[("grpc-status", "0")], Some(Outcome::Success)),
        (&[("grpc-status", "14")], Some(Outcome::TRANSIENT)),
        (&[("grpc-status", "8")], Some(Outcome::throttled(None))),
        // Cancelled by the server or a proxy, not by this client.
        (&[("grpc-status", "1")], Some(Outcome::Permanent)),
        (&[("grpc-status", "what")], Some(Outcome::Permanent)),
        (&[("grpc-status", "99")], Some(Outcome::Permanent)),
        (
            &[("grpc-status", "8"), ("grpc-retry-pushback-ms", "20")],
            Some(Outcome::Failed { kind: FailureKind::Throttled, hint: Some(ServerHint::AtLeast(ms(20))) }),
        ),
    ] {
        assert_eq!(outcome(fields), want, "{fields:?}");
    }
    let malformed = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "what".parse().unwrap())]);
    let unknown = grpc::outcome_with(&malformed, |code| Codes::new(&[UNKNOWN]).outcome(code));
    assert_eq!(unknown, Some(Outcome::TRANSIENT), "a malformed status is UNKNOWN");
}

#[test]
fn grpc_messages_are_recognized_by_their_content_type() {
    for (value, want) in [
        ("application/grpc", true),
        ("application/grpc+proto", true),
        ("application/grpc-web+proto", true),
        ("application/grpc;charset=utf-8", true),
        ("application/grpcish", false),
        ("application/json", false),
    ] {
        let headers = HeaderMap::from_iter([("content-type".parse().unwrap(), value.parse().unwrap())]);
        assert_eq!(grpc::is_grpc(&headers), want, "{value}");
    }
    assert!(!grpc::is_grpc(&HeaderMap::new()));
}

#[test]
fn a_timeout_is_formatted_in_the_finest_unit_that_fits_and_rounded_down() {
    for (duration, want) in [
        (Duration::ZERO, "0n"),
        (Duration::from_nanos(99_999_999), "99999999n"),
        (Duration::from_nanos(100_000_999), "100000u"),
        (Duration::from_secs(99_999), "99999000m"),
        (Duration::from_secs(100_000), "100000S"),
        (Duration::from_secs(100_000_000), "1666666M"),
        (Duration::MAX, "99999999H"),
    ] {
        assert_eq!(grpc::format_timeout(duration), want);
        assert!(grpc::parse_timeout(want).unwrap() <= duration, "{want}");
    }
    for text in ["", "n", "1", "123456789n", "-1S", "1 S", "1s", "1.5S", "ﬁS"] {
        assert_eq!(grpc::parse_timeout(text), None, "{text:?}");
    }
}
