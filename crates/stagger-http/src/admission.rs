//! Admission over HTTP, for servers: what a request shows, what an answer says, and how many may be inside.
//!
//! With tower, [`AdmissionLayer`](crate::tower::AdmissionLayer) does all of it. These are its parts, for servers that have no
//! layers, or whose clients stay for longer than their request: an upgrade to a WebSocket is answered at once, and its place
//! is taken until the connection ends.

use core::time::Duration;

use http::{HeaderMap, HeaderValue, header};
use stagger::{Admission, Admitted, Instant};

use crate::header::{RESERVATION, RESERVATION_TOKEN, RETRY_AFTER_MS};

/// Asks for a request with these headers: with its ticket, if it has brought one.
pub fn try_admit(admission: &Admission, headers: &HeaderMap, now: Instant) -> Admitted {
    let ticket = headers.get(RESERVATION_TOKEN).and_then(|ticket| ticket.to_str().ok()?.parse().ok());
    ticket.map_or_else(|| admission.ask(now), |ticket| admission.come(&ticket, now))
}

/// Puts a refusal into the headers of an answer, which has the status 503: an appointment as [`stagger-reservation`](RESERVATION) and
/// `Retry-After`, any other wait as [`set_retry_after`] does.
///
/// ```
/// use http::HeaderMap;
/// use stagger::{Admission, Instant};
/// use stagger_http::admission::{set_rejection_headers, try_admit};
///
/// let admission = Admission::per_second(100).burst(1).build()?;
/// let (mut headers, now) = (HeaderMap::new(), Instant::ZERO);
/// try_admit(&admission, &headers, now);
/// set_rejection_headers(try_admit(&admission, &headers, now), &mut headers);
/// assert_eq!(headers["retry-after"], "1");
/// assert!(headers["stagger-reservation"].to_str()?.starts_with("10;ticket="));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn set_rejection_headers(answer: Admitted, headers: &mut HeaderMap) {
    match answer {
        Admitted::Later(appointment) => {
            if let Ok(slot) = HeaderValue::try_from(appointment.to_string()) {
                headers.insert(RESERVATION, slot);
            }
            in_seconds(appointment.after, headers);
        }
        Admitted::Full(wait) => set_retry_after(wait, headers),
        _ => in_seconds(Duration::ZERO, headers),
    }
}

/// Puts a wait into the headers of an answer, for clients that spread themselves beyond it: `Retry-After` in whole seconds
/// and `retry-after-ms`, both rounded up. The seconds are 1 at least: "now" would be a rendezvous.
pub fn set_retry_after(wait: Duration, headers: &mut HeaderMap) {
    let millis = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    headers.insert(RETRY_AFTER_MS, HeaderValue::from(millis));
    in_seconds(wait, headers);
}

fn in_seconds(wait: Duration, headers: &mut HeaderMap) {
    let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
}
