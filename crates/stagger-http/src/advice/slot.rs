use http::HeaderMap;
use stagger::admission::Reservation;

/// The header of a response that carries an appointment for this caller alone: the milliseconds to wait, and the ticket to
/// bring along, like `1520;token=` and 32 hexadecimal digits.
pub const SLOT: &str = "stagger-slot";

/// The header of a request that comes to its appointment: the 32 digits.
pub const TICKET: &str = "stagger-ticket";

/// The appointment of a response. Of several, none: it is not known which one was kept.
#[must_use]
pub fn slot(headers: &HeaderMap) -> Option<Reservation> {
    let mut values = headers.get_all(SLOT).into_iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    only.to_str().ok()?.trim_matches([' ', '\t']).parse().ok()
}
