use http::HeaderMap;
use stagger::admission::Reservation;

use crate::header::RESERVATION;

/// Parses the reservation of a response.
///
/// Returns `None` if the header is missing, malformed or repeated: which of several reservations the server kept is unknown.
#[must_use]
pub fn reservation(headers: &HeaderMap) -> Option<Reservation> {
    let mut values = headers.get_all(RESERVATION).into_iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    only.to_str().ok()?.trim_matches([' ', '\t']).parse().ok()
}
