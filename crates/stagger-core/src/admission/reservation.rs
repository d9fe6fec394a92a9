use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::numbers::instant::Instant;
use crate::numbers::seed::Seed;
use crate::text::{ParseError, Problem};

/// A time at which a rejected client may return, reserved for it alone. Complete: it is what the text form holds.
///
/// As text, for a header: the milliseconds to wait, rounded up, and the token to present: `1520;token=` and 32
/// hexadecimal digits. The client treats the wait as a [`ServerHint::Reserved`](crate::ServerHint::Reserved).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// How long to wait.
    pub after: Duration,
    /// The token to present on return.
    pub token: ReservationToken,
}

/// The proof of a reservation, which the client presents when it returns.
///
/// It is signed with the server's secret, so that it cannot be made up by accident or guessed casually. The signature
/// is not cryptographically secure: do not rely on it against attackers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReservationToken {
    time: u64,
    seal: u64,
}

impl ReservationToken {
    pub(super) const fn seal(time: Instant, secret: Seed) -> Self {
        let time = time.as_nanos();
        Self { time, seal: secret.for_call(time).get() }
    }

    /// Returns the reserved time, if the token was sealed with this secret.
    pub(super) const fn time(&self, secret: Seed) -> Option<Instant> {
        if secret.for_call(self.time).get() == self.seal { Some(Instant::from_nanos(self.time)) } else { None }
    }
}

impl fmt::Display for ReservationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.time, self.seal)
    }
}

impl FromStr for ReservationToken {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(Problem::Reservation, text);
        // `from_str_radix` would also accept a sign.
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(error());
        }
        let (time, seal) = text.split_at(16);
        let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| error());
        Ok(Self { time: number(time)?, seal: number(seal)? })
    }
}

impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{};token={}", self.after.as_nanos().div_ceil(1_000_000), self.token)
    }
}

impl FromStr for Reservation {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(Problem::Reservation, text);
        let (millis, token) = text.split_once(';').ok_or_else(error)?;
        let token = token.trim_start().strip_prefix("token=").ok_or_else(error)?;
        let millis = millis.trim_end();
        if millis.is_empty() || !millis.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(error());
        }
        let millis = millis.parse().map_err(|_| error())?;
        Ok(Self { after: Duration::from_millis(millis), token: token.trim_end().parse()? })
    }
}
