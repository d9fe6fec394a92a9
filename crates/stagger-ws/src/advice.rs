use core::time::Duration;
#[cfg(feature = "client")]
use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use stagger::admission::Reservation;
use stagger_http::hint::LONGEST_WAIT;

/// The maximum length of a close reason, in bytes: RFC 6455, section 5.5.
const MAX_REASON: usize = 123;

/// When a client should reconnect after the server closed its connection: at a random time in `[retry_after,
/// retry_after + spread]`.
///
/// Sent as JSON in the reason of a close frame with code 1012 or 1013, at most 123 bytes. The client treats it as a
/// hint: its own limits still apply, however long the requested wait.
///
/// Complete: a minimum and a spread.
///
/// ```
/// use std::time::Duration;
/// use stagger_ws::ReconnectAdvice;
///
/// let advice = ReconnectAdvice { retry_after: Duration::from_secs(8), spread: Duration::from_secs(20) };
/// assert_eq!(advice.to_reason(), r#"{"retry_after_ms":8000,"spread_ms":20000}"#);
/// assert_eq!(ReconnectAdvice::from_reason(&advice.to_reason()), Some(advice));
/// assert_eq!(ReconnectAdvice::from_reason("going away"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconnectAdvice {
    /// The minimum wait after the close.
    pub retry_after: Duration,
    /// The length of the interval after `retry_after` over which clients are spread uniformly.
    pub spread: Duration,
}

/// The JSON document. Unknown fields are ignored, so that a server may add its own.
#[derive(Serialize, Deserialize)]
struct Wire {
    retry_after_ms: u64,
    #[serde(default)]
    spread_ms: u64,
}

/// The JSON document of a reservation, in whose place a client without reservations reads advice without a spread.
#[derive(Serialize, Deserialize)]
struct ReservedWire<'a> {
    retry_after_ms: u64,
    /// The token.
    reservation: &'a str,
}

impl ReconnectAdvice {
    /// Formats this as a close reason of at most 123 bytes. Rounds up to milliseconds; waits of more than
    /// [366 days](LONGEST_WAIT) are capped.
    #[must_use]
    pub fn to_reason(self) -> String {
        let wire = Wire { retry_after_ms: millis(self.retry_after), spread_ms: millis(self.spread) };
        // Serializing two numbers cannot fail.
        serde_json::to_string(&wire).unwrap_or_default()
    }

    /// Parses a close reason. Returns `None` if it is not reconnect advice. A missing spread means zero, and unknown
    /// fields are ignored; negative and fractional numbers are rejected, and waits of more than
    /// [366 days](LONGEST_WAIT), which are mistakes such as a Unix time.
    #[must_use]
    pub fn from_reason(reason: &str) -> Option<Self> {
        if reason.len() > MAX_REASON {
            return None;
        }
        let wire: Wire = serde_json::from_str(reason).ok()?;
        Some(Self { retry_after: possible(wire.retry_after_ms)?, spread: possible(wire.spread_ms)? })
    }

    /// Formats a reservation as a close reason of at most 123 bytes: `{"retry_after_ms":1520,"reservation":"…"}`, with
    /// its token. Rounds up to milliseconds. For a client that knows no reservations it is advice without a spread.
    #[must_use]
    pub fn reason_of(reservation: &Reservation) -> String {
        let token = reservation.token.to_string();
        // Serializing a number and a string cannot fail.
        serde_json::to_string(&ReservedWire { retry_after_ms: millis(reservation.after), reservation: &token })
            .unwrap_or_default()
    }

    /// Parses the reservation in a close reason. Returns `None` if there is none, or if the token is not one.
    #[must_use]
    pub fn reservation(reason: &str) -> Option<Reservation> {
        let wire = ReservedWire::parse(reason)?;
        Some(Reservation { after: possible(wire.retry_after_ms)?, token: wire.reservation.parse().ok()? })
    }

    /// Returns a close reason as a log may show it: a reservation without its token.
    #[cfg(feature = "client")]
    pub(crate) fn without_token(reason: &str) -> Cow<'_, str> {
        match ReservedWire::parse(reason) {
            // The token is a part of the reason as it is, since JSON with escapes is not parsed.
            Some(wire) if !wire.reservation.is_empty() => reason.replace(wire.reservation, "…").into(),
            _ => reason.into(),
        }
    }
}

impl<'a> ReservedWire<'a> {
    fn parse(reason: &'a str) -> Option<Self> {
        if reason.len() > MAX_REASON { None } else { serde_json::from_str(reason).ok() }
    }
}

/// Returns the wait unless no server can mean it.
fn possible(millis: u64) -> Option<Duration> {
    let wait = Duration::from_millis(millis);
    if wait <= LONGEST_WAIT { Some(wait) } else { None }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.min(LONGEST_WAIT).as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn every_advice_fits_into_a_close_frame_and_round_trips() {
        let longest = LONGEST_WAIT;
        for length in [Duration::ZERO, ms(1), ms(86_400_000), longest] {
            for advice in [
                ReconnectAdvice { retry_after: length, spread: ms(20_000) },
                ReconnectAdvice { retry_after: ms(8_000), spread: length },
                ReconnectAdvice { retry_after: length, spread: length },
            ] {
                let reason = advice.to_reason();
                assert!(reason.len() <= MAX_REASON, "{reason}");
                assert_eq!(ReconnectAdvice::from_reason(&reason), Some(advice));
            }
        }
        let beyond = ReconnectAdvice { retry_after: Duration::MAX, spread: Duration::MAX };
        assert_eq!(
            ReconnectAdvice::from_reason(&beyond.to_reason()),
            Some(ReconnectAdvice { retry_after: longest, spread: longest })
        );
    }

    #[test]
    fn every_reservation_fits_into_a_close_frame_and_is_advice_for_other_clients() {
        for after in [Duration::ZERO, ms(1), ms(86_400_000), LONGEST_WAIT] {
            let token = "ffffffffffffffff0123456789abcdef".parse().unwrap();
            let reservation = Reservation { after, token };
            let reason = ReconnectAdvice::reason_of(&reservation);
            assert!(reason.len() <= MAX_REASON, "{reason}");
            assert_eq!(ReconnectAdvice::reservation(&reason), Some(reservation));
            let advice = ReconnectAdvice { retry_after: after, spread: Duration::ZERO };
            assert_eq!(ReconnectAdvice::from_reason(&reason), Some(advice));
        }
        for reason in [r#"{"retry_after_ms":1}"#, r#"{"retry_after_ms":1,"reservation":"x"}"#, "", "null"] {
            assert_eq!(ReconnectAdvice::reservation(reason), None, "{reason}");
        }
    }

    #[cfg(feature = "client")]
    #[test]
    fn a_log_shows_the_reason_without_the_token() {
        for (reason, want) in [
            (
                r#"{"retry_after_ms":1,"reservation":"ffffffffffffffff0123456789abcdef"}"#,
                r#"{"retry_after_ms":1,"reservation":"…"}"#,
            ),
            (r#"{"retry_after_ms":1,"reservation":"ABC"}"#, r#"{"retry_after_ms":1,"reservation":"…"}"#),
            (r#"{"retry_after_ms":1,"reservation":""}"#, r#"{"retry_after_ms":1,"reservation":""}"#),
            (r#"{"retry_after_ms":1,"spread_ms":2}"#, r#"{"retry_after_ms":1,"spread_ms":2}"#),
            ("going away", "going away"),
        ] {
            assert_eq!(ReconnectAdvice::without_token(reason), want);
        }
    }

    // Reconnecting late is safe; reconnecting early is not.
    #[test]
    fn fractions_of_a_millisecond_are_rounded_up() {
        let advice = ReconnectAdvice { retry_after: Duration::from_nanos(1), spread: Duration::from_micros(1_001) };
        assert_eq!(advice.to_reason(), r#"{"retry_after_ms":1,"spread_ms":2}"#);
    }

    #[test]
    fn only_valid_advice_is_parsed() {
        let spaced = r#" { "retry_after_ms" : 8000 , "why" : ["deploy"], "spread_ms" : 20 } "#;
        assert_eq!(
            ReconnectAdvice::from_reason(spaced),
            Some(ReconnectAdvice { retry_after: ms(8_000), spread: ms(20) })
        );
        let alone = ReconnectAdvice::from_reason(r#"{"retry_after_ms":7}"#);
        assert_eq!(alone, Some(ReconnectAdvice { retry_after: ms(7), spread: ms(0) }));
        for reason in [
            "",
            "service restart",
            "8000",
            "null",
            "{}",
            r#"{"spread_ms":20}"#,
            r#"{"retry_after_ms":-1}"#,
            r#"{"retry_after_ms":1.5}"#,
            r#"{"retry_after_ms":"8000"}"#,
            r#"{"retry_after_ms":18446744073709551616}"#,
            // More than a year, such as a Unix time.
            r#"{"retry_after_ms":31622400001}"#,
            r#"{"retry_after_ms":1795255202000,"spread_ms":20}"#,
            r#"{"retry_after_ms":20,"spread_ms":1795255202000}"#,
            r#"{"retry_after_ms":1,"retry_after_ms":2}"#,
            r#"{"retry_after_ms":1"#,
            r#"{"retry_after_ms":1}x"#,
        ] {
            assert_eq!(ReconnectAdvice::from_reason(reason), None, "{reason}");
        }
        let long = format!(r#"{{"retry_after_ms":1{}}}"#, " ".repeat(MAX_REASON - 20));
        assert_eq!((long.len(), ReconnectAdvice::from_reason(&long).is_some()), (MAX_REASON, true));
        assert_eq!(ReconnectAdvice::from_reason(&format!("{long} ")), None);
    }
}
