use core::time::Duration;

use crate::machine::state::{DECIDED, IN_FLIGHT, RetryState};
use crate::numbers::instant::{Instant, nanos};
use crate::numbers::random::Seed;

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
