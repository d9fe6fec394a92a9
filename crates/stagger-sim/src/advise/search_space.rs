//! The default policy and the search space for each purpose.

use core::ops::RangeInclusive;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Jitter, Policy, Ratio, Seed};

use crate::lint::Purpose;
use crate::lint::context::usual_policy;

/// The range of policies that suit a purpose.
pub(super) struct SearchSpace {
    /// The recommendation if there is nothing to simulate.
    pub(super) default_policy: Policy,
    pub(super) attempts: Attempts,
    /// The shortest base to try.
    shortest_base: Duration,
    /// The total length of the delays of a call without a deadline; `None` if nobody waits for it.
    pub(super) patience: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempts {
    /// At most this many, for calls whose callers wait and must not be delayed by a spread.
    AtMost(u32),
    /// As many attempts as all clients need to recover, and at least this many.
    Enough(u32),
    Unlimited,
}

/// The ranges to search for a fleet. Ranges of lengths are in seconds, and searched evenly in their logarithm.
pub(super) struct Ranges {
    pub(super) base: (f64, f64),
    pub(super) cap: (f64, f64),
    /// `None` for calls, which are not spread.
    pub(super) spread: Option<(f64, f64)>,
    pub(super) attempts: Option<RangeInclusive<u32>>,
}

/// A point of the search space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) base: f64,
    pub(super) cap: f64,
    pub(super) multiplier: f64,
    pub(super) jitter: Jitter,
    pub(super) spread: f64,
    pub(super) attempts: u32,
}

/// The jitters to try. Without jitter, clients that have come together stay together.
pub(super) const JITTERS: [Jitter; 5] = [
    Jitter::Full,
    Jitter::Equal,
    Jitter::Decorrelated,
    Jitter::Factor(Ratio::percent(20)),
    Jitter::Factor(Ratio::percent(50)),
];

pub(super) const MULTIPLIERS: (f64, f64) = (1.5, 10.0);

impl SearchSpace {
    pub(super) fn for_purpose(purpose: Option<Purpose>) -> Self {
        let (shortest_base, patience, attempts) = match purpose {
            Some(Purpose::Interactive) => (20, Some(10), Attempts::AtMost(3)),
            Some(Purpose::Serverless) => (50, Some(10), Attempts::AtMost(3)),
            Some(Purpose::Near) => (10, Some(10), Attempts::AtMost(4)),
            Some(Purpose::Far) => (100, Some(30), Attempts::AtMost(4)),
            Some(Purpose::Background) => (1_000, None, Attempts::Enough(10)),
            Some(Purpose::Reconnecting) => (500, None, Attempts::Unlimited),
            // Without a purpose, assumes a typical call.
            None => (50, Some(30), Attempts::AtMost(4)),
        };
        Self {
            default_policy: usual_policy(purpose),
            attempts,
            shortest_base: Duration::from_millis(shortest_base),
            patience: patience.map(Duration::from_secs),
        }
    }

    /// Returns whether clients retry until they are back, with unlimited attempts.
    pub(super) fn is_long_lived(&self) -> bool {
        self.attempts == Attempts::Unlimited
    }

    /// Returns whether a caller waits for the call, so that its first attempt is not delayed by a spread.
    pub(super) fn is_call(&self) -> bool {
        matches!(self.attempts, Attempts::AtMost(_))
    }

    /// Returns the ranges for a fleet that its server needs `acceptance_time` to accept, after at most this outage.
    /// With a deadline, longer delays than that are not searched.
    pub(super) fn ranges(
        &self,
        acceptance_time: Duration,
        outage: Duration,
        deadline: Option<Duration>,
        min_delay: Duration,
    ) -> Ranges {
        let (accepts, outage) = (acceptance_time.as_secs_f64(), outage.as_secs_f64());
        let shortest = self.shortest_base.max(min_delay).as_secs_f64();
        if let Attempts::AtMost(most) = self.attempts {
            let patience = deadline.or(self.patience).unwrap_or_default().as_secs_f64().max(2.0 * shortest);
            // A base that lets the second attempt of all clients be served, or as long as all attempts fit.
            let longest = (accepts + outage).max(patience / f64::from(most)).min(patience).max(shortest);
            return Ranges {
                base: (shortest, longest),
                cap: (shortest, patience),
                spread: None,
                attempts: Some(2..=most),
            };
        }
        let limit = deadline.map_or(f64::INFINITY, |deadline| deadline.as_secs_f64().max(0.001));
        let spread = accepts.max(0.001);
        let length = |most: f64| (shortest, most.min(limit).max(shortest));
        Ranges {
            base: length(accepts.clamp(5.0, 600.0)),
            cap: length((4.0 * accepts).clamp(60.0, 3_600.0)),
            spread: Some((
                spread.min(0.5 * limit),
                (3.0 * (spread + outage.min(60.0))).min(rounded_down(0.999 * limit)),
            )),
            attempts: None,
        }
    }

    /// Creates the policy of a point; returns `None` if it is not valid.
    pub(super) fn policy(&self, point: &Point) -> Option<Policy> {
        let base = round_up(length(point.base));
        let cap = round_up(length(point.cap)).max(base);
        let multiplier = (point.multiplier * 10.0).round() / 10.0;
        let builder = match point.jitter {
            Jitter::Decorrelated => Policy::decorrelated(base, cap),
            jitter => Policy::exponential(base, cap).multiplier(multiplier).jitter(jitter),
        };
        let builder = match self.attempts {
            Attempts::AtMost(_) => builder.max_attempts(point.attempts),
            Attempts::Enough(_) | Attempts::Unlimited => {
                builder.unlimited_attempts().spread(round_up(length(point.spread)))
            }
        };
        let builder = match self.default_policy.stable_after() {
            Some(lived) => builder.stable_after(lived),
            None => builder,
        };
        let builder = match self.default_policy.max_hint() {
            // A hint that is as short as a delay of the policy is not refused.
            Some(longest) => builder.max_hint(longest.max(cap)),
            None => builder.unlimited_hint(),
        };
        builder.build().ok()
    }
}

impl Ranges {
    /// Draws a point.
    pub(super) fn draw(&self, seed: Seed) -> Point {
        let share = |n: u64| (seed.draw(n) >> 11) as f64 / (1_u64 << 53) as f64;
        let between = |n, (low, high): (f64, f64)| low * (high / low).powf(share(n));
        let attempts = self.attempts.as_ref().map_or(0, |range| {
            let count = range.end() - range.start() + 1;
            range.start() + ((share(5) * f64::from(count)) as u32).min(count - 1)
        });
        Point {
            base: between(0, self.base),
            cap: between(1, self.cap),
            multiplier: between(2, MULTIPLIERS),
            jitter: JITTERS[((share(3) * JITTERS.len() as f64) as usize).min(JITTERS.len() - 1)],
            spread: self.spread.map_or(0.0, |range| between(4, range)),
            attempts,
        }
    }

    /// Returns points that differ in one setting, with lengths varied by these factors, or in a length and its cap.
    pub(super) fn near(&self, point: &Point, factors: &[f64]) -> Vec<Point> {
        let within = |value: f64, (low, high): (f64, f64)| value.clamp(low, high);
        let mut near = Vec::new();
        for factor in factors {
            near.push(Point { base: within(point.base * factor, self.base), ..*point });
            near.push(Point { cap: within(point.cap * factor, self.cap), ..*point });
            let (base, cap) = (within(point.base * factor, self.base), within(point.cap * factor, self.cap));
            near.push(Point { base, cap, ..*point });
            near.push(Point { multiplier: within(point.multiplier * factor, MULTIPLIERS), ..*point });
            if let Some(range) = self.spread {
                near.push(Point { spread: within(point.spread * factor, range), ..*point });
            }
        }
        // The same delay every time, and as wide a range by decorrelated jitter.
        near.push(Point { cap: point.base, ..*point });
        near.push(Point { jitter: Jitter::Decorrelated, base: within(point.base / 2.0, self.base), ..*point });
        near.extend(JITTERS.map(|jitter| Point { jitter, ..*point }));
        near.extend(self.attempts.iter().flat_map(Clone::clone).map(|attempts| Point { attempts, ..*point }));
        near
    }

    /// Returns what is searched, as a sentence without a full stop.
    pub(super) fn text(&self) -> String {
        let range = |(low, high): (f64, f64)| {
            format!("{:.2} to {:.2}", Compact(round_up(length(low))), Compact(round_up(length(high))))
        };
        let last = match (self.spread, &self.attempts) {
            (Some(spread), _) => format!("spreads of {}", range(spread)),
            (None, Some(attempts)) => format!("{} to {} attempts, no spread", attempts.start(), attempts.end()),
            (None, None) => "no spread".to_owned(),
        };
        format!(
            "searched: constant and exponential delays, bases of {}, caps of {}, multipliers of {} to {}, jitter full, equal, decorrelated, ±20% and \
             ±50%, {last}",
            range(self.base),
            range(self.cap),
            MULTIPLIERS.0,
            MULTIPLIERS.1,
        )
    }
}

fn length(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Rounds up to two digits, so that the simulated policy is exactly the printed one.
pub(super) fn round_up(length: Duration) -> Duration {
    let ms = length.as_micros().div_ceil(1_000);
    let digits = ms.checked_ilog10().unwrap_or(0).saturating_sub(1);
    let step = 10_u128.pow(digits);
    Duration::from_millis(u64::try_from(ms.div_ceil(step).saturating_mul(step)).unwrap_or(u64::MAX))
}

/// Rounds seconds down to two digits, so that rounding up does not reach a limit above it.
fn rounded_down(seconds: f64) -> f64 {
    let step = 10_f64.powf(seconds.log10().floor() - 1.0).max(0.001);
    (seconds / step).floor() * step
}

/// Returns why the search space suits the purpose.
pub(super) const fn rationale(purpose: Option<Purpose>) -> &'static str {
    match purpose {
        Some(Purpose::Interactive) => "a user waits: at most three attempts, within 10 s unless a deadline is given",
        Some(Purpose::Serverless) => {
            "execution time is billed: at most three attempts, and none after the invocation limit"
        }
        Some(Purpose::Near) => "a nearby API: a base of a few times the duration of a call, at most four attempts",
        Some(Purpose::Far) => "a database or a remote service: a base of 100 ms or more, at most four attempts",
        Some(Purpose::Background) => "no caller waits: long delays that drift apart, and many attempts",
        Some(Purpose::Reconnecting) => {
            "a long-lived connection: the first wave is spread, and the backoff resets only after the connection has \
             been stable"
        }
        None => "assuming a call to a nearby service: at most four attempts",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recommended_durations_have_two_digits() {
        for (ms, want) in [(0, 0), (7, 7), (99, 99), (101, 110), (20_000, 20_000), (20_001, 21_000), (123_456, 130_000)]
        {
            assert_eq!(round_up(Duration::from_millis(ms)), Duration::from_millis(want), "{ms}");
        }
    }

    #[test]
    fn spreads_are_shorter_than_the_deadline() {
        let space = SearchSpace::for_purpose(Some(Purpose::Background));
        for ms in [1_000, 1_101, 7_826, 10_000, 60_000] {
            let deadline = Duration::from_millis(ms);
            let ranges = space.ranges(Duration::from_secs(90), Duration::ZERO, Some(deadline), Duration::ZERO);
            let longest = ranges.spread.unwrap().1;
            let point = Point { spread: longest, ..ranges.draw(Seed::new(1)) };
            let spread = space.policy(&point).unwrap().spread();
            assert!(spread < deadline && spread > deadline.mul_f64(0.85), "{spread:?} {deadline:?}");
        }
    }

    #[test]
    fn drawn_policies_lie_within_the_ranges() {
        let space = SearchSpace::for_purpose(Some(Purpose::Far));
        let ranges = space.ranges(Duration::from_secs(7), Duration::ZERO, None, Duration::ZERO);
        for n in 0..500 {
            let policy = space.policy(&ranges.draw(Seed::new(n))).unwrap();
            let (attempts, cap) = (policy.max_attempts().unwrap().get(), policy.cap().unwrap());
            assert!((100..=7_500).contains(&policy.base().as_millis()) && (2..=4).contains(&attempts), "{policy}");
            assert!(policy.base() <= cap && cap <= Duration::from_secs(30), "{policy}");
        }
    }
}
