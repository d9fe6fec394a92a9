use core::fmt;
use core::time::Duration;

use crate::instant::nanos;

/// How the ceiling of the delay grows from retry to retry (`n` counts retries from 1).
///
/// [`Jitter`](crate::Jitter) says how the delay is drawn from the ceiling.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Backoff {
    /// No delay at all: retries at full speed, for tests, or where something else paces the calls.
    Zero,
    /// `delay`, every time; with the default equal jitter, each wait is from half of it to all of it.
    Constant {
        /// The ceiling of every retry.
        delay: Duration,
    },
    /// `min(cap, base + (n − 1) · step)`.
    Linear {
        /// The ceiling of the first retry.
        base: Duration,
        /// The amount that each further retry adds.
        step: Duration,
    },
    /// `min(cap, base · multiplier^(n − 1))`, by repeated IEEE multiplication.
    ///
    /// With base 100 ms, multiplier 2, cap 1 s: 100, 200, 400, 800, 1000, 1000 ms.
    Exponential {
        /// The ceiling of the first retry.
        base: Duration,
        /// The factor of each further retry. Finite, at least 1; default 2.
        multiplier: f64,
    },
    /// The delays of a list, one after the other, each with equal jitter by default: from half of it to all of it. The
    /// last one repeats.
    List(DelayList),
    /// No retry: the schedule is empty.
    Stop,
}

impl Backoff {
    /// Returns the word that a policy begins with in the policy language.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Constant { .. } => "constant",
            Self::Linear { .. } => "linear",
            Self::Exponential { .. } => "exponential",
            Self::List(_) => "list",
            Self::Stop => "stop",
        }
    }
}

/// Up to 16 delays, exact, inside a policy that stays plain data.
///
/// They are stored as whole multiples, below 2^32, of their greatest common divisor. A list does not fit if its delays
/// differ by more than nine orders of magnitude and have no common divisor of that size, like 1 ns and 1 h.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DelayList {
    multiples: [u32; Self::MAX_LEN],
    len: u8,
    /// The greatest common divisor, in nanoseconds; at least 1.
    unit: u64,
}

impl DelayList {
    /// The maximum number of delays in a list.
    pub const MAX_LEN: usize = 16;

    /// A list without a delay, which no policy accepts.
    pub(crate) const EMPTY: Self = Self { multiples: [0; Self::MAX_LEN], len: 0, unit: 1 };

    /// Creates a list; `None` if it is too long, or if its delays are not multiples of a common unit as described
    /// above.
    pub(crate) const fn new(delays: &[Duration]) -> Option<Self> {
        if delays.len() > Self::MAX_LEN {
            return None;
        }
        let mut unit = 0;
        let mut at = 0;
        while at < delays.len() {
            unit = greatest_common_divisor(unit, nanos(delays[at]));
            at += 1;
        }
        let mut list = Self { unit: if unit == 0 { 1 } else { unit }, len: delays.len() as u8, ..Self::EMPTY };
        at = 0;
        while at < delays.len() {
            let multiple = nanos(delays[at]) / list.unit;
            if multiple > u32::MAX as u64 {
                return None;
            }
            list.multiples[at] = multiple as u32;
            at += 1;
        }
        Some(list)
    }

    /// Returns the number of delays.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether the list is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the delays, in order.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Duration> + '_ {
        self.multiples[..self.len()].iter().map(|&multiple| Duration::from_nanos(u64::from(multiple) * self.unit))
    }

    /// Returns the ceiling of retry `n` (from 1) in nanoseconds; the last delay repeats.
    pub(crate) const fn nanos(&self, n: u32) -> u64 {
        let last = self.len.saturating_sub(1) as u32;
        let at = n.saturating_sub(1);
        let at = if at < last { at } else { last };
        self.multiples[at as usize % Self::MAX_LEN] as u64 * self.unit
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl fmt::Debug for DelayList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_list_is_exact_and_its_last_delay_repeats() {
        let delays = [Duration::from_millis(10), Duration::ZERO, Duration::from_secs(3600), Duration::from_micros(15)];
        let list = DelayList::new(&delays).unwrap();
        assert!(list.iter().eq(delays));
        let ceilings: Vec<_> = [1, 2, 3, 4, 5, u32::MAX].map(|n| list.nanos(n)).into();
        assert_eq!(ceilings, [10_000_000, 0, 3_600_000_000_000, 15_000, 15_000, 15_000]);
    }

    #[test]
    fn lists_that_do_not_fit_are_rejected() {
        assert!(DelayList::new(&[Duration::from_nanos(1), Duration::from_secs(3600)]).is_none());
        assert!(DelayList::new(&[Duration::from_secs(1); 17]).is_none());
        assert!(DelayList::new(&[Duration::MAX; 16]).is_some());
        assert!(DelayList::new(&[Duration::ZERO]).is_some());
    }
}
