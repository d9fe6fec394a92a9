//! Classification of statuses, and which requests are safe to retry; rows HT-23 and HT-25 as far as method and headers
//! go.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::io;

use http::{HeaderMap, Method, StatusCode};
use stagger::{FailureKind, Outcome, ServerHint};
use stagger_http::status::outcome;
use stagger_http::{Idempotency, RequestProgress};

fn class(status: u16, idempotency: Idempotency, hint: Option<ServerHint>) -> &'static str {
    match outcome(StatusCode::from_u16(status).unwrap(), idempotency, hint) {
        Outcome::Success => "success",
        Outcome::Failed { kind: FailureKind::Transient, .. } => "transient",
        Outcome::Failed { kind: FailureKind::Throttled, .. } => "throttled",
        Outcome::Permanent => "permanent",
        other => panic!("{status}: {other:?}"),
    }
}

#[test]
fn every_status_has_its_class() {
    for status in 100..=999 {
        let want = match status {
            100..400 => "success",
            429 => "throttled",
            408 | 425 | 500 | 502..=504 | 509 | 512..600 => "transient",
            _ => "permanent",
        };
        assert_eq!(class(status, Idempotency::ByMethod, None), want, "{status}");
    }
}

#[test]
fn a_conflict_is_retried_if_the_request_has_a_key() {
    assert_eq!(class(409, Idempotency::ByKey, None), "transient");
    assert_eq!([400, 422].map(|status| class(status, Idempotency::ByKey, None)), ["permanent"; 2]);
}

#[test]
fn a_503_with_a_hint_is_throttled_and_the_hint_is_passed_on() {
    let hint = Some(ServerHint::AtLeast(Duration::from_secs(2)));
    assert_eq!(class(503, Idempotency::ByMethod, hint), "throttled");
    assert_eq!(class(502, Idempotency::ByMethod, hint), "transient");
    for status in [408, 429, 500, 503] {
        let got = outcome(StatusCode::from_u16(status).unwrap(), Idempotency::ByMethod, hint);
        assert!(matches!(got, Outcome::Failed { hint: passed, .. } if passed == hint), "{status}");
    }
}

#[test]
fn ht_23_only_idempotent_requests_are_retried_once_sent() {
    let plain = HeaderMap::new();
    let allowed = |method: &Method, progress| Idempotency::from_request(method, &plain).allows_retry(progress);
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE] {
        assert!(allowed(&method, RequestProgress::MaybeProcessed), "{method}");
    }
    for method in [Method::POST, Method::PATCH, Method::CONNECT, Method::from_bytes(b"PROPFIND").unwrap()] {
        assert!(!allowed(&method, RequestProgress::MaybeProcessed), "{method}");
        assert!(
            allowed(&method, RequestProgress::NotSent) && allowed(&method, RequestProgress::NotProcessed),
            "{method}"
        );
    }
}

#[test]
fn ht_25_a_key_makes_any_method_idempotent() {
    let keyed = HeaderMap::from_iter([("idempotency-key".parse().unwrap(), "\"8e03978e\"".parse().unwrap())]);
    assert_eq!(Idempotency::from_request(&Method::POST, &keyed), Idempotency::ByKey);
    assert!(Idempotency::from_request(&Method::POST, &keyed).allows_retry(RequestProgress::MaybeProcessed));
}

#[test]
fn a_refused_connection_is_found_in_the_source_chain_of_an_error() {
    #[derive(Debug)]
    struct Transport(io::Error);
    impl fmt::Display for Transport {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("transport error")
        }
    }
    impl Error for Transport {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }
    for (kind, want) in [
        (io::ErrorKind::ConnectionRefused, RequestProgress::NotSent),
        (io::ErrorKind::NetworkUnreachable, RequestProgress::NotSent),
        (io::ErrorKind::ConnectionReset, RequestProgress::MaybeProcessed),
        (io::ErrorKind::TimedOut, RequestProgress::MaybeProcessed),
    ] {
        assert_eq!(RequestProgress::from_error(&Transport(kind.into())), want, "{kind}");
    }
    assert_eq!(RequestProgress::from_error(&fmt::Error), RequestProgress::MaybeProcessed);
}
