//! Admission over HTTP, for servers: what a request shows, what an answer says, and how many may be inside.
//!
//! With tower, [`AdmissionLayer`](crate::tower::AdmissionLayer) does all of it. These are its parts, for servers that have no
//! layers, or whose clients stay for longer than their request: an upgrade to a WebSocket is answered at once, and its place
//! is taken until the connection ends.

use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use stagger::{Instant, admission::Admission, admission::Admit};

use crate::advice::{SLOT, TICKET};

/// `Retry-After` in milliseconds, as many clients read it.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// Asks for a request with these headers: with its ticket, if it has brought one.
pub fn ask(admission: &Admission, headers: &HeaderMap, now: Instant) -> Admit {
    let ticket = headers.get(TICKET).and_then(|ticket| ticket.to_str().ok()?.parse().ok());
    ticket.map_or_else(|| admission.try_admit(now), |ticket| admission.admit_reserved(&ticket, now))
}

/// Puts a refusal into the headers of an answer, which has the status 503: an appointment as [`stagger-slot`](SLOT) and
/// `Retry-After`, any other wait as [`retry_after`] does.
///
/// ```
/// use http::HeaderMap;
/// use stagger::{admission::Admission, Instant};
/// use stagger_http::admission::{ask, refuse};
///
/// let admission = Admission::per_second(100).burst(1).build()?;
/// let (mut headers, now) = (HeaderMap::new(), Instant::ZERO);
/// ask(&admission, &headers, now);
/// refuse(ask(&admission, &headers, now), &mut headers);
/// assert_eq!(headers["retry-after"], "1");
/// assert!(headers["stagger-slot"].to_str()?.starts_with("10;token="));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn refuse(answer: Admit, headers: &mut HeaderMap) {
    match answer {
        Admit::At(appointment) => {
            if let Ok(slot) = HeaderValue::try_from(appointment.to_string()) {
                headers.insert(SLOT, slot);
            }
            in_seconds(appointment.after, headers);
        }
        Admit::Full(wait) => retry_after(wait, headers),
        _ => in_seconds(Duration::ZERO, headers),
    }
}

/// Puts a wait into the headers of an answer, for clients that spread themselves beyond it: `Retry-After` in whole seconds
/// and `retry-after-ms`, both rounded up. The seconds are 1 at least: "now" would be a rendezvous.
pub fn retry_after(wait: Duration, headers: &mut HeaderMap) {
    let millis = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    headers.insert(RETRY_AFTER_MS, HeaderValue::from(millis));
    in_seconds(wait, headers);
}

fn in_seconds(wait: Duration, headers: &mut HeaderMap) {
    let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
}

/// So many places, each taken by who is inside. Its clones share them.
///
/// ```
/// use stagger_http::admission::Places;
///
/// let places = Places::new(1);
/// let place = places.take().expect("nobody is inside");
/// assert!(places.take().is_none());
/// drop(place);
/// assert_eq!(places.taken(), 0);
/// ```
#[derive(Clone)]
pub struct Places(Arc<Count>);

struct Count {
    most: usize,
    taken: AtomicUsize,
}

impl Places {
    /// At most so many are inside at a time; `usize::MAX` for no limit.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Count { most, taken: AtomicUsize::new(0) }))
    }

    /// A place, if one is free.
    #[must_use]
    pub fn take(&self) -> Option<Place> {
        let add = |taken: usize| (taken < self.0.most).then_some(taken + 1);
        self.0.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, add).ok()?;
        Some(Place(Arc::clone(&self.0)))
    }

    /// How many are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// How many there are, taken or not.
    #[must_use]
    pub fn most(&self) -> usize {
        self.0.most
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("most", &self.most()).field("taken", &self.taken()).finish()
    }
}

/// A place that is taken; dropped, it is free again.
pub struct Place(Arc<Count>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}
