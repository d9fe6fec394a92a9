use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::Secret;
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
/// It is valid once. It is sealed by SipHash-2-4 with the server's [`Secret`], so a client cannot make one up. It proves
/// nothing about who shows it: any client that has seen it can redeem it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReservationToken {
    position: u64,
    seal: u64,
}

impl ReservationToken {
    /// Seals a position, which only an admission with the same secret accepts. For an [`AdmissionControl`](super::AdmissionControl)
    /// of your own; what a position means is its matter.
    #[inline]
    #[must_use]
    pub fn seal(position: u64, secret: Secret) -> Self {
        Self { position, seal: secret.seal(position) }
    }

    /// Returns the reserved position, if the token was sealed with this secret.
    #[inline]
    #[must_use]
    pub fn position(&self, secret: Secret) -> Option<u64> {
        secret.verifies(self.position, self.seal).then_some(self.position)
    }
}

impl fmt::Display for ReservationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.position, self.seal)
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
        let (position, seal) = text.split_at(16);
        let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| error());
        Ok(Self { position: number(position)?, seal: number(seal)? })
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
