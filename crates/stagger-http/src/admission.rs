//! Admission control over HTTP, for servers: the headers of requests and of rejections.
//!
//! With tower, [`AdmissionLayer`](crate::tower::AdmissionLayer) does all of this. These are its parts, for servers
//! without layers, and for connections that outlive their request: the request for a WebSocket upgrade is answered at
//! once, but it counts against the concurrency limit until the connection ends.

use core::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use stagger::Instant;
use stagger::admission::{AdmissionControl, Admit, ReservationToken};

use crate::header::{RESERVATION, RESERVATION_TOKEN, RETRY_AFTER_MS};

/// Asks `admission` whether to admit a request with these headers now, and redeems its reservation token if it carries
/// one.
pub fn try_admit(admission: &(impl AdmissionControl + ?Sized), headers: &HeaderMap, now: Instant) -> Admit {
    match reservation_token(headers) {
        Some(token) => admission.admit_reserved(&token, now),
        None => admission.try_admit(now),
    }
}

fn reservation_token(headers: &HeaderMap) -> Option<ReservationToken> {
    headers.get(RESERVATION_TOKEN)?.to_str().ok()?.parse().ok()
}

/// Sets the headers of the 503 response to a request that is not admitted.
///
/// A reservation is sent as [`stagger-reservation`](RESERVATION) and `Retry-After`; without one, the delay is sent as
/// [`set_retry_after`] does.
///
/// ```
/// use http::HeaderMap;
/// use stagger::admission::{Admission, random_secret};
/// use stagger::Instant;
/// use stagger_http::admission::{set_rejection_headers, try_admit};
///
/// let admission = Admission::per_second(100).burst(1).build(random_secret())?;
/// let (mut headers, now) = (HeaderMap::new(), Instant::ZERO);
/// try_admit(&admission, &headers, now);
/// set_rejection_headers(try_admit(&admission, &headers, now), &mut headers);
/// assert_eq!(headers["retry-after"], "1");
/// assert!(headers["stagger-reservation"].to_str()?.starts_with("10;token="));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_rejection_headers(admitted: Admit, headers: &mut HeaderMap) {
    match admitted {
        Admit::At(reservation) => {
            if let Ok(value) = HeaderValue::try_from(reservation.to_string()) {
                headers.insert(RESERVATION, value);
            }
            set_seconds(reservation.after, headers);
        }
        Admit::Full(delay) => set_retry_after(delay, headers),
        _ => set_seconds(Duration::ZERO, headers),
    }
}

/// Sets `Retry-After`, in whole seconds, and `retry-after-ms`, both rounded up.
///
/// The seconds are at least 1, since `Retry-After: 0` would bring all clients back at the same moment. The delay is a
/// lower bound; clients are expected to spread themselves beyond it.
pub fn set_retry_after(delay: Duration, headers: &mut HeaderMap) {
    let millis = u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    headers.insert(RETRY_AFTER_MS, HeaderValue::from(millis));
    set_seconds(delay, headers);
}

fn set_seconds(delay: Duration, headers: &mut HeaderMap) {
    let seconds = delay.as_secs().saturating_add(u64::from(delay.subsec_nanos() > 0));
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
}
