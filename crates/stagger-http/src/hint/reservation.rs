use http::HeaderMap;
use stagger::Appointment;

use crate::header::RESERVATION;

/// The appointment of a response. Of several, none: it is not known which one was kept.
#[must_use]
pub fn reservation(headers: &HeaderMap) -> Option<Appointment> {
    let mut values = headers.get_all(RESERVATION).into_iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    only.to_str().ok()?.trim_matches([' ', '\t']).parse().ok()
}
