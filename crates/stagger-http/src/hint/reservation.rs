use http::HeaderMap;
use stagger::Appointment;

/// The header of a response that carries an appointment for this caller alone: the milliseconds to wait, and the ticket to
/// bring along, like `1520;ticket=` and 32 hexadecimal digits.
pub const RESERVATION: &str = "stagger-reservation";

/// The header of a request that comes to its appointment: the 32 digits.
pub const RESERVATION_TOKEN: &str = "stagger-reservation-token";

/// The appointment of a response. Of several, none: it is not known which one was kept.
#[must_use]
pub fn reservation(headers: &HeaderMap) -> Option<Appointment> {
    let mut values = headers.get_all(RESERVATION).into_iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    only.to_str().ok()?.trim_matches([' ', '\t']).parse().ok()
}
