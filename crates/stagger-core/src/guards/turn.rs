use core::fmt;
use core::time::Duration;

use crate::guards::now::Now;
use crate::numbers::instant::Instant;
use crate::outcome::Outcome;

/// A guard that says when an attempt may start: now, after a wait, or not at all.
///
/// A call [asks](Self::admit) when an attempt is about to start. If it is told to wait, it waits and asks again with the
/// permit that it received, which is its place among the waiting calls. Each permit is settled exactly once: by
/// [`record`](Self::record) with the outcome of the attempt, or by [`release`](Self::release) if the attempt was not made.
/// Calls that never ask can still record outcomes, with [`LimiterPermit::NONE`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not limit when attempts start",
    label = "expected a type that implements `Limiter`, such as `QuietPeriod` or `Pacer`"
)]
pub trait Limiter: fmt::Debug + Send + Sync {
    /// Asks to start an attempt now. `permit` is [`LimiterPermit::NONE`] at first, and then the permit of the last answer.
    /// An attempt that cannot start by `latest` is rejected at once.
    fn admit(&self, permit: LimiterPermit, latest: Option<Instant>, now: &dyn Now) -> Turn;

    /// Admits an attempt if the limiter lets every attempt start at present, which it can say without the time. The permit
    /// need not be settled. `None` if the limiter has to be [asked](Self::admit). Default: `None`.
    ///
    /// A call that has no other guards than limiters starts and succeeds on a shorter path if all of them return a permit.
    fn admit_if_open(&self) -> Option<LimiterPermit> {
        None
    }

    /// Returns whether an attempt that is due `after` from now and must start by `latest` would certainly be rejected.
    /// Changes nothing.
    fn would_reject(&self, after: Duration, latest: Option<Instant>, now: &dyn Now) -> bool;

    /// Records the outcome of the attempt that `permit` was granted for.
    fn record(&self, permit: LimiterPermit, outcome: &Outcome, now: &dyn Now);

    /// Releases the permit of a call that no longer waits, or of an attempt that was not made.
    fn release(&self, permit: LimiterPermit);

    /// Returns whether the attempt that `permit` was granted for may still begin, for callers that prepare it for a while. If
    /// not, [`release`](Self::release) the permit and ask again. Changes nothing. Default: true.
    fn is_current(&self, permit: &LimiterPermit) -> bool {
        let _ = permit;
        true
    }

    /// Returns how long a call that asked now would wait; zero if it could start. Changes nothing.
    fn retry_in(&self, now: &dyn Now) -> Duration;

    /// Returns whether the limiter has nothing to remember: a new one with the same settings would hold no call that this
    /// one would not, now or after the same further outcomes. A collection of limiters by key can then replace it.
    /// Default: false.
    fn is_at_rest(&self, now: &dyn Now) -> bool {
        let _ = now;
        false
    }

    /// Returns a new limiter with the same settings, for clients that have one per target; `None` (the default) if the
    /// targets are to share this one.
    fn fresh(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

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
