use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::text::{ParseError, Problem};
use crate::{Instant, Seed};

/// When one refused client should come back, reserved for it alone.
///
/// As text, for a header: the milliseconds to wait, rounded up, and the ticket to bring along: `1520;ticket=` and 32
/// hexadecimal digits. The client takes the wait for a [`ServerHint::Reserved`](crate::ServerHint::Reserved).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appointment {
    /// How long to wait.
    pub after: Duration,
    /// What to show on return.
    pub ticket: Ticket,
}

/// What a client shows when it comes to its appointment.
///
/// It is signed with the server's secret, so that one cannot be made up by accident or for fun. That is no cryptography:
/// whoever wants in by force is not kept out by an appointment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    slot: u64,
    seal: u64,
}

impl Ticket {
    pub(super) const fn seal(slot: Instant, secret: Seed) -> Self {
        let slot = slot.as_nanos();
        Self { slot, seal: secret.for_call(slot).get() }
    }

    /// The appointed time, if the ticket was sealed with this secret.
    pub(super) const fn slot(&self, secret: Seed) -> Option<Instant> {
        if secret.for_call(self.slot).get() == self.seal { Some(Instant::from_nanos(self.slot)) } else { None }
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.slot, self.seal)
    }
}

impl FromStr for Ticket {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fault = || ParseError::new(Problem::Ticket, text);
        // `from_str_radix` takes a sign, too.
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(fault());
        }
        let (slot, seal) = text.split_at(16);
        let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| fault());
        Ok(Self { slot: number(slot)?, seal: number(seal)? })
    }
}

impl fmt::Display for Appointment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{};ticket={}", self.after.as_nanos().div_ceil(1_000_000), self.ticket)
    }
}

impl FromStr for Appointment {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fault = || ParseError::new(Problem::Ticket, text);
        let (millis, ticket) = text.split_once(';').ok_or_else(fault)?;
        let ticket = ticket.trim_start().strip_prefix("ticket=").ok_or_else(fault)?;
        let millis = millis.trim_end();
        if millis.is_empty() || !millis.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(fault());
        }
        let millis = millis.parse().map_err(|_| fault())?;
        Ok(Self { after: Duration::from_millis(millis), ticket: ticket.trim_end().parse()? })
    }
}
