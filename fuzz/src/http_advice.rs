//! What a server says about coming back: whatever it sends, nothing panics, what can be read is read alike by whoever reads
//! it, and a date that was read can be written and read again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use stagger_core::ServerHint;
use stagger_http::advice::{RetryAfter, hint, parse_http_date, retry_after};
use stagger_http::grpc;

/// `pairs` are headers, by the number of their name, which are received at this Unix time.
pub fn check((seconds, pairs): (u64, Vec<(u8, Vec<u8>)>)) {
    // Until the year 9999, the last of which a date can be written.
    let now = UNIX_EPOCH + Duration::from_secs(seconds % 253_402_300_800);
    let mut headers = HeaderMap::new();
    for (name, value) in &pairs {
        let name = NAMES[usize::from(*name) % NAMES.len()];
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(HeaderName::from_static(name), value);
        }
        if let Ok(text) = core::str::from_utf8(value) {
            read_again(text, now);
        }
    }
    let said = hint(&headers, || now);
    assert_eq!(said, hint(&headers, || now));
    if let (Some(wait), false) = (retry_after(&headers, now), pairs.iter().any(|(name, _)| name % 8 < 3)) {
        assert_eq!(said, Some(ServerHint::AtLeast(wait)), "the seconds count where there is nothing finer");
    }
    let _ = (grpc::outcome(&headers), grpc::pushback(&headers));
}

const NAMES: [&str; 8] = [
    "stagger-slot",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "retry-after",
    "date",
    "ratelimit",
    "grpc-status",
    "grpc-retry-pushback-ms",
];

fn read_again(text: &str, now: SystemTime) {
    if let Some(date) = parse_http_date(text, now) {
        let written = httpdate::fmt_http_date(date);
        assert_eq!(parse_http_date(&written, now), Some(date), "{text:?} was read as {written}");
    }
    if let Some(RetryAfter::Wait(_)) = RetryAfter::parse(text, now) {
        assert!(text.trim_matches([' ', '\t']).bytes().all(|byte| byte.is_ascii_digit()), "{text:?}");
    }
    if let Some(length) = grpc::parse_timeout(text) {
        assert!(grpc::parse_timeout(&grpc::timeout(length)).is_some_and(|again| again <= length), "{text:?}");
    }
}
