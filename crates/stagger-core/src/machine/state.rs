use crate::numbers::instant::Instant;

/// The state of one call between its attempts: 24 bytes of plain data.
///
/// It is separate from the policy, which calls share, and from the seed, which the driver has, so that millions of
/// calls or simulated clients store only this.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryState {
    /// The start of the call, if `is_timed`.
    pub(crate) start: Instant,
    /// The ceiling of the coming retry, or the delay that was drawn last; not set before the first failure.
    pub(crate) carry: f64,
    /// The number of the current or last attempt; 0 before the first.
    pub(crate) attempt: u32,
    /// How many times the count was restarted.
    pub(crate) episode: u16,
    /// One byte, stored and loaded as one: setting a bit in half of a larger number stalls the next load.
    pub(crate) flags: u8,
    /// Whether the start of the call is known. Not a flag, because it fills the last of 24 bytes: without it, the
    /// compiler moves a fresh state in two halves that overlap, and the load of the first waits for the stores of both.
    pub(crate) is_timed: bool,
}

/// The one immediate repeat has been used.
pub(crate) const REPEATED: u8 = 1;
/// The coming attempt is that repeat, which is not counted.
pub(crate) const REPEATS: u8 = 2;
/// The schedule has begun, and `carry` is set.
pub(crate) const BEGUN: u8 = 4;
/// The schedule began with a loss and not with a failed attempt, so its retries are one ahead of the attempts.
pub(crate) const AHEAD: u8 = 8;
/// The coming attempt is the result of a decision, and its permit is the one of that decision.
pub(crate) const DECIDED: u8 = 16;
/// The call was paused during an attempt, and nothing has been decided about that attempt.
pub(crate) const IN_FLIGHT: u8 = 32;
/// How many waits in a row exact hints have shortened: a number from 0 to 3 in the highest bits, so that one more than 3 is 0.
pub(crate) const SHORTENED: u8 = 0b1100_0000;
/// One wait of [`SHORTENED`].
pub(crate) const SHORTENED_ONCE: u8 = 0b0100_0000;

impl RetryState {
    /// Creates the state of a call that has not begun.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { start: Instant::ZERO, carry: 0.0, attempt: 0, episode: 0, flags: 0, is_timed: false }
    }

    /// Creates the state of a call that began at `start`. Use this to track elapsed time; a policy with a time limit
    /// tracks it in any case.
    #[inline]
    #[must_use]
    pub const fn started(start: Instant) -> Self {
        Self { start, is_timed: true, ..Self::new() }
    }

    /// Sets the number of attempts, for a call whose attempts another layer made, such as a batch. About the last of them
    /// [`RetryMachine::decide_unrecorded`](crate::machine::RetryMachine::decide_unrecorded) decides; its delay is that of
    /// the retry with this number.
    #[must_use]
    pub const fn with_attempts(self, attempts: u32) -> Self {
        Self { attempt: attempts, flags: self.flags & !(BEGUN | DECIDED | REPEATS), ..self }
    }

    /// Marks the coming attempt as a retry, for a call that repeats what another call has attempted: the budget charges
    /// it, with the permit of [`RetryMachine::reacquire`](crate::machine::RetryMachine::reacquire), and does not credit
    /// it as a first attempt.
    #[must_use]
    pub const fn as_retry(self) -> Self {
        Self { flags: self.flags | DECIDED, ..self }
    }

    /// Returns the number of the current or last attempt, from 1; 0 before the first.
    #[inline]
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Returns when the call began; `None` if nothing needed the time.
    #[inline]
    #[must_use]
    pub const fn start(&self) -> Option<Instant> {
        if self.is_timed { Some(self.start) } else { None }
    }

    /// Returns the number of the coming retry in the schedule, from 1; 0 before the first attempt.
    #[inline]
    #[must_use]
    pub const fn retry_number(&self) -> u32 {
        self.attempt.wrapping_add((self.flags & AHEAD != 0) as u32)
    }

    /// Begins an episode: restarts the count, the schedule and the clock. Later draws have new numbers.
    pub(crate) const fn begin_episode(&mut self) {
        *self = Self { episode: self.episode.wrapping_add(1), ..Self::new() };
    }

    /// Restarts the attempt count and the schedule, but not the clock, before the decision about the attempt that
    /// ended, which is then the schedule's first failure.
    pub(crate) const fn reset(&mut self) {
        let Self { start, flags, is_timed, .. } = *self;
        self.begin_episode();
        (self.start, self.is_timed) = (start, is_timed);
        self.flags = flags & DECIDED | AHEAD;
    }
}

impl Default for RetryState {
    fn default() -> Self {
        Self::new()
    }
}
