//! What a status means, and what may be repeated; rows HT-23 and HT-25 as far as a request's own words go.

use core::error::Error;
use core::fmt;
use core::time::Duration;
use std::io;

use http::{HeaderMap, Method, StatusCode};
use stagger::{FailureKind, Outcome, ServerHint};
use stagger_http::status::{Keyed, outcome};
use stagger_http::{Repeat, Sent};

fn meaning(status: u16, keyed: Keyed, hint: Option<ServerHint>) -> &'static str {
    match outcome(StatusCode::from_u16(status).unwrap(), keyed, hint) {
        Outcome::Success => "success",
        Outcome::Failed { kind: FailureKind::Transient, .. } => "transient",
        Outcome::Failed { kind: FailureKind::Throttled, .. } => "throttled",
        Outcome::Permanent => "permanent",
        other => panic!("{status}: {other:?}"),
    }
}

#[test]
fn every_status_has_its_meaning() {
    for status in 100..=999 {
        let want = match status {
            100..400 => "success",
            429 => "throttled",
            408 | 425 | 500 | 502..=504 | 509 | 512..600 => "transient",
            _ => "permanent",
        };
        assert_eq!(meaning(status, Keyed::No, None), want, "{status}");
    }
}

#[test]
fn a_key_makes_a_conflict_worth_another_attempt() {
    assert_eq!(meaning(409, Keyed::Yes, None), "transient");
    assert_eq!([400, 422].map(|status| meaning(status, Keyed::Yes, None)), ["permanent"; 2]);
}

#[test]
fn a_server_that_says_when_to_come_back_is_throttling_and_the_hint_is_handed_on() {
    let hint = Some(ServerHint::AtLeast(Duration::from_secs(2)));
    assert_eq!(meaning(503, Keyed::No, hint), "throttled");
    assert_eq!(meaning(502, Keyed::No, hint), "transient");
    for status in [408, 429, 500, 503] {
        let got = outcome(StatusCode::from_u16(status).unwrap(), Keyed::No, hint);
        assert!(matches!(got, Outcome::Failed { hint: handed, .. } if handed == hint), "{status}");
    }
}

#[test]
fn ht_23_only_what_is_idempotent_is_repeated_after_it_was_sent() {
    let plain = HeaderMap::new();
    let allowed = |method: &Method, sent| Repeat::of(method, &plain).allows(sent);
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE] {
        assert!(allowed(&method, Sent::Perhaps), "{method}");
    }
    for method in [Method::POST, Method::PATCH, Method::CONNECT, Method::from_bytes(b"PROPFIND").unwrap()] {
        assert!(!allowed(&method, Sent::Perhaps), "{method}");
        assert!(allowed(&method, Sent::No) && allowed(&method, Sent::Unprocessed), "{method}");
    }
}

#[test]
fn ht_25_a_key_makes_any_method_idempotent() {
    let keyed = HeaderMap::from_iter([("idempotency-key".parse().unwrap(), "\"8e03978e\"".parse().unwrap())]);
    assert_eq!(Repeat::of(&Method::POST, &keyed), Repeat::Key);
    assert!(Repeat::of(&Method::POST, &keyed).allows(Sent::Perhaps));
}

#[test]
fn a_connection_that_was_refused_is_found_in_the_chain_of_an_error() {
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
        (io::ErrorKind::ConnectionRefused, Sent::No),
        (io::ErrorKind::NetworkUnreachable, Sent::No),
        (io::ErrorKind::ConnectionReset, Sent::Perhaps),
        (io::ErrorKind::TimedOut, Sent::Perhaps),
    ] {
        assert_eq!(Sent::of(&Transport(kind.into())), want, "{kind}");
    }
    assert_eq!(Sent::of(&fmt::Error), Sent::Perhaps);
}
