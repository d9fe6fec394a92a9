//! Server hints in response headers: any value parses without a panic, parsing is deterministic, and a parsed date
//! can be formatted and parsed again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use stagger_core::ServerHint;
use stagger_http::grpc;
use stagger_http::hint::{RetryAfter, parse_http_date, retry_after, server_hint};

/// Parses `pairs`, which are headers with the number of their name, as received at this Unix time in seconds.
pub fn check((seconds, pairs): (u64, Vec<(u8, Vec<u8>)>)) {
    // At most the year 9999, the last that a date can have.
    let now = UNIX_EPOCH + Duration::from_secs(seconds % 253_402_300_800);
    let mut headers = HeaderMap::new();
    for (name, value) in &pairs {
        let name = NAMES[usize::from(*name) % NAMES.len()];
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(HeaderName::from_static(name), value);
        }
        if let Ok(text) = core::str::from_utf8(value) {
            check_text(text, now);
        }
    }
    let parsed = server_hint(&headers, || now);
    assert_eq!(parsed, server_hint(&headers, || now));
    if let (Some(wait), false) = (retry_after(&headers, now), pairs.iter().any(|(name, _)| name % 8 < 3)) {
        assert_eq!(parsed, Some(ServerHint::AtLeast(wait)), "Retry-After counts if no header has milliseconds");
    }
    let _ = (grpc::outcome(&headers), grpc::pushback(&headers));
}

const NAMES: [&str; 8] = [
    "stagger-reservation",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "retry-after",
    "date",
    "ratelimit",
    "grpc-status",
    "grpc-retry-pushback-ms",
];

fn check_text(text: &str, now: SystemTime) {
    if let Some(date) = parse_http_date(text, now) {
        let written = httpdate::fmt_http_date(date);
        assert_eq!(parse_http_date(&written, now), Some(date), "{text:?} parses as {written}");
    }
    if let Some(RetryAfter::Delay(_)) = RetryAfter::parse(text, now) {
        assert!(text.trim_matches([' ', '\t']).bytes().all(|byte| byte.is_ascii_digit()), "{text:?}");
    }
    if let Some(length) = grpc::parse_timeout(text) {
        assert!(grpc::parse_timeout(&grpc::format_timeout(length)).is_some_and(|again| again <= length), "{text:?}");
    }
}
