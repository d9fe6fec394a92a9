//! The state of one call between its attempts, and its form without a clock.

use core::time::Duration;

use crate::numbers::instant::{Instant, nanos};
use crate::numbers::random::Seed;

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
/// How many waits in a row exact hints have shortened: a number from 0 to 3 in the highest bits, so that one more than
/// 3 is 0.
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

    /// Sets the number of attempts, for a call whose attempts another layer made, such as a batch. About the last of
    /// them [`RetryMachine::decide_unrecorded`](crate::machine::RetryMachine::decide_unrecorded) decides; its delay is
    /// that of the retry with this number.
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

/// A paused retry: the state of a call without reference to a clock, to be resumed later, in another process if
/// necessary.
///
/// It stores the elapsed time instead of the instant at which the call began. The time of the pause itself does not
/// count, unless it is added with [`advanced_by`](Self::advanced_by).
///
/// Permits are not part of it: release them before pausing, and acquire a new one with
/// [`RetryMachine::reacquire`](crate::machine::RetryMachine::reacquire).
///
/// With the feature `serde` it is written as a table of numbers below 2⁵³, and of texts for the larger ones, so that it
/// survives formats and programs whose numbers are all `f64`, such as JavaScript. Reading rejects values that no state
/// can have. The table is internal to this library, and later versions can read it.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{Instant, Seed, machine::RetryState};
///
/// let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
/// let paused = RetryState::started(at(1_000)).pause(Seed::new(7), at(1_400));
/// assert_eq!((paused.attempt(), paused.elapsed()), (0, Some(Duration::from_millis(400))));
///
/// // On another clock.
/// assert_eq!(paused.resume(at(90_000)).start(), Some(at(89_600)));
/// assert_eq!(paused.advanced_by(Duration::from_secs(1)).resume(at(90_000)).start(), Some(at(88_600)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paused {
    /// Its start is relative to the epoch of no clock: the elapsed time is in `elapsed`, if it was tracked.
    state: RetryState,
    /// At most what a clock can show: 2⁶³ − 1 ns.
    elapsed: Duration,
    seed: Seed,
}

impl RetryState {
    /// Pauses this state, with the seed of its delays. `now` is the time of the clock that drove it. An attempt in
    /// progress counts as made, and the next one is a retry, which needs a permit; what follows it is for
    /// [`RetryMachine::decide_unrecorded`](crate::machine::RetryMachine::decide_unrecorded) to decide.
    #[must_use]
    pub const fn pause(self, seed: Seed, now: Instant) -> Paused {
        let elapsed = match self.start() {
            Some(start) => now.saturating_since(start),
            None => Duration::ZERO,
        };
        let in_flight = if self.attempt > 0 && self.flags & DECIDED == 0 { DECIDED | IN_FLIGHT } else { 0 };
        Paused { state: Self { start: Instant::ZERO, flags: self.flags | in_flight, ..self }, elapsed, seed }
    }
}

impl Paused {
    /// Returns how many attempts were made.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.state.attempt()
    }

    /// Returns whether the last of these attempts was in progress, so that its outcome is not known. If it was paused
    /// before each attempt in case the attempt kills the process, the attempt has probably done so.
    #[must_use]
    pub const fn is_in_flight(&self) -> bool {
        self.state.flags & IN_FLIGHT != 0
    }

    /// Returns the time that had passed since the start of the call; `None` if it was not tracked.
    #[must_use]
    pub const fn elapsed(&self) -> Option<Duration> {
        if self.state.is_timed { Some(self.elapsed) } else { None }
    }

    /// Returns the seed of its delays.
    #[must_use]
    pub const fn seed(&self) -> Seed {
        self.seed
    }

    /// Adds `by` to the elapsed time, to count the pause against a time limit.
    #[must_use]
    pub const fn advanced_by(self, by: Duration) -> Self {
        Self { elapsed: Duration::from_nanos(nanos(self.elapsed.saturating_add(by))), ..self }
    }

    /// Returns the state on a clock at `now`. If the start would lie before the epoch of this clock, it is moved there,
    /// so a time limit ends later. The clocks of `stagger` leave room for a century before the present.
    #[must_use]
    pub const fn resume(self, now: Instant) -> RetryState {
        let start = if self.state.is_timed {
            Instant::from_nanos(now.as_nanos().saturating_sub(nanos(self.elapsed)))
        } else {
            Instant::ZERO
        };
        RetryState { start, ..self.state }
    }
}

#[cfg(feature = "serde")]
mod serde {
    use core::time::Duration;

    use ::serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::Paused;
    use crate::machine::state::RetryState;
    use crate::numbers::instant::Instant;
    use crate::numbers::instant::nanos;
    use crate::numbers::random::Seed;

    /// JavaScript and others read every number as an `f64`, which rounds integers above 2⁵³, and some readers do not
    /// preserve a fraction to the last bit: the numbers that need 64 bits are written as text.
    #[derive(Serialize, Deserialize)]
    #[serde(rename = "Paused")]
    struct Table {
        attempt: u32,
        episode: u16,
        /// Those of the state, and in the lowest bit whether the start of the call is known.
        flags: u16,
        #[serde(with = "as_text")]
        carry_ns: f64,
        elapsed: Duration,
        #[serde(with = "as_text")]
        seed: u64,
    }

    impl Serialize for Paused {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let RetryState { start: _, carry, attempt, episode, flags, is_timed } = self.state;
            let flags = u16::from(flags) << 1 | u16::from(is_timed);
            let seed = self.seed.get();
            Table { attempt, episode, flags, carry_ns: carry, elapsed: self.elapsed, seed }.serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for Paused {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let Table { attempt, episode, flags, carry_ns: carry, elapsed, seed } = Table::deserialize(deserializer)?;
            let is_timed = flags & 1 != 0;
            let flags = u8::try_from(flags >> 1).ok();
            // A length of time: neither negative nor NaN, nor beyond any cap.
            let (true, Some(flags)) = (carry.is_finite() && carry >= 0.0, flags) else {
                return Err(de::Error::custom("not the state of a retry: it was damaged, or is of a later version"));
            };
            let state = RetryState { start: Instant::ZERO, carry, attempt, episode, flags, is_timed };
            Ok(Self { state, elapsed: Duration::from_nanos(nanos(elapsed)), seed: Seed::new(seed) })
        }
    }

    /// Writes a number as text, and reads it back to the last bit.
    mod as_text {
        use core::fmt::{self, Display};
        use core::marker::PhantomData;
        use core::str::FromStr;

        use ::serde::{Deserializer, Serializer, de};

        pub(super) fn serialize<T: Display, S: Serializer>(number: &T, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(number)
        }

        pub(super) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
            deserializer.deserialize_str(Number(PhantomData))
        }

        struct Number<T>(PhantomData<T>);

        impl<T: FromStr> de::Visitor<'_> for Number<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number in quotes")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
                text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
    }
}
