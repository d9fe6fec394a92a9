use crate::Instant;

/// What one call remembers between its attempts: 24 bytes, plain data.
///
/// It is apart from the policy, which is shared, and from the seed, which the driver knows anyway, so that millions of
/// calls, or of simulated clients, keep only this.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryState {
    /// The start of the call, if `TIMED`.
    pub(crate) start: Instant,
    /// The ceiling of the coming retry, or the delay that was drawn last; not yet set before the first.
    pub(crate) carry: f64,
    /// The attempt that is being made, or was made last; 0 before the first.
    pub(crate) attempt: u32,
    /// How often the count was started again.
    pub(crate) episode: u16,
    /// One byte, which is stored and loaded as one: a bit set in half of a larger number stalls the next load.
    pub(crate) flags: u8,
}

/// The start of the call is known.
pub(crate) const TIMED: u8 = 1;
/// The one immediate repeat was used.
pub(crate) const REPEATED: u8 = 2;
/// The coming attempt is that repeat: it does not count.
pub(crate) const REPEATS: u8 = 4;
/// The schedule has begun, and `carry` is set.
pub(crate) const BEGUN: u8 = 8;
/// The schedule began with a loss and not with a failed attempt, so its retries are one ahead of the attempts.
pub(crate) const AHEAD: u8 = 16;
/// The coming attempt was decided on, and its permit is the one of that decision.
pub(crate) const DECIDED: u8 = 32;
/// All of them.
#[cfg(feature = "serde")]
pub(crate) const FLAGS: u8 = TIMED | REPEATED | REPEATS | BEGUN | AHEAD | DECIDED;

impl RetryState {
    /// A call that has not begun.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { start: Instant::ZERO, carry: 0.0, attempt: 0, episode: 0, flags: 0 }
    }

    /// A call that began at `start`. Whoever wants to know the elapsed time begins with this; a limit of time in the
    /// policy does it by itself.
    #[inline]
    #[must_use]
    pub const fn started(start: Instant) -> Self {
        Self { start, flags: TIMED, ..Self::new() }
    }

    /// The attempt that is being made, or was made last, counted from 1; 0 before the first.
    #[inline]
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When the call began, if anybody asked for the time.
    #[inline]
    #[must_use]
    pub const fn start(&self) -> Option<Instant> {
        if self.flags & TIMED != 0 { Some(self.start) } else { None }
    }

    /// The number of the coming retry in the schedule, from 1; 0 before the first attempt.
    #[inline]
    #[must_use]
    pub const fn retry_number(&self) -> u32 {
        self.attempt.wrapping_add((self.flags & AHEAD != 0) as u32)
    }

    /// Starts everything again; draws go on with new numbers.
    pub(crate) const fn begin_episode(&mut self) {
        *self = Self { episode: self.episode.wrapping_add(1), ..Self::new() };
    }

    /// Starts the count of attempts and the schedule again, not the clock, before the decision about what just ended:
    /// that is the first failure of the schedule.
    pub(crate) const fn reset(&mut self) {
        let Self { start, flags, .. } = *self;
        self.begin_episode();
        self.start = start;
        self.flags = flags & (TIMED | DECIDED) | AHEAD;
    }
}

impl Default for RetryState {
    fn default() -> Self {
        Self::new()
    }
}
