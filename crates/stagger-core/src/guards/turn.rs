use core::time::Duration;

/// The answer of a [`Limiter`](crate::guard::Limiter) to a call that wants to start an attempt.
///
/// Complete: a call starts, waits or ends.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a permit that is not handed on is never settled"]
pub enum Turn {
    /// The attempt starts now, with this permit.
    Now(LimiterPermit),
    /// The call waits, and then asks again with this permit, which is its place.
    Wait {
        /// How long to wait before asking again.
        after: Duration,
        /// The place of the call.
        permit: LimiterPermit,
    },
    /// The attempt is not made. The permit that the call had is released.
    Rejected {
        /// In how long the attempt could start, as far as is known. A retry around this call treats it as a hint.
        retry_in: Duration,
    },
}

/// The permit of a limiter for one attempt, or the place of a call that waits for it: a number whose meaning is known to
/// the limiter only.
///
/// Neither `Copy` nor `Clone`, so that it is settled once.
#[derive(Debug, PartialEq, Eq)]
pub struct LimiterPermit(pub u64);

impl LimiterPermit {
    /// No permit.
    pub const NONE: Self = Self(0);
}
