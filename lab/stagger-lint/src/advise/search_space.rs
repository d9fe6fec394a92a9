//! The default policy and the search space for each purpose, and the simplest form of a policy that was found.

use core::time::Duration;

use stagger_core::schedule::Backoff;
use stagger_core::{Jitter, Policy, PolicyBuilder};

use super::ranges::{Point, Ranges, length, round_up, rounded_down};
use crate::Purpose;
use crate::context::usual_policy;

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
        let limit = match deadline {
            Some(deadline) => deadline.as_secs_f64().max(0.001),
            None => f64::INFINITY,
        };
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

/// Returns the simplest policy with the same delays: a constant delay where delays do not grow, no cap beyond the last
/// ceiling, and no multiplier beyond the one that reaches the cap. Returns `None` if all delays are equal, so that
/// clients that have come together stay together.
pub(super) fn simplest(policy: &Policy) -> Option<Policy> {
    let (&Backoff::Exponential { base, multiplier }, Some(cap)) = (policy.backoff(), policy.cap()) else {
        return Some(*policy);
    };
    let retries = policy.max_attempts().map(|most| most.get() - 1);
    if policy.jitter() == Jitter::Decorrelated {
        let first = (base, cap.min(base.saturating_mul(3)));
        return match retries {
            _ if cap <= base => None,
            Some(1) => with_settings(Policy::uniform(first.0, first.1), policy),
            _ => Some(*policy),
        };
    }
    let last = retries.map_or(Duration::MAX, |retries| grown(base, multiplier, retries.saturating_sub(1)));
    if cap.min(last) <= base {
        let (shortest, longest) = policy.bounds(1)?;
        return match policy.floor() {
            floor if floor >= longest => None,
            // A constant delay has no floor; all jitters of the search are uniform between their bounds.
            floor if floor == shortest && !floor.is_zero() => with_settings(Policy::uniform(floor, longest), policy),
            _ => with_settings(Policy::constant(base).jitter(policy.jitter()), policy),
        };
    }
    let cap = cap.min(round_up(last));
    let least = (10.0 * cap.as_secs_f64() / base.as_secs_f64()).ceil() / 10.0;
    let builder = policy.to_builder().cap(cap).multiplier(multiplier.min(least.max(USUAL_MULTIPLIER)));
    builder.build().ok()
}

/// The multiplier of every policy that does not set another one.
const USUAL_MULTIPLIER: f64 = 2.0;

/// Returns the ceiling after this many multiplications.
fn grown(base: Duration, multiplier: f64, times: u32) -> Duration {
    let seconds = base.as_secs_f64() * multiplier.powi(i32::try_from(times).unwrap_or(i32::MAX));
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Builds a policy with the settings of another that do not concern its delays.
fn with_settings(builder: PolicyBuilder, of: &Policy) -> Option<Policy> {
    let mut builder = builder.spread(of.spread());
    builder = match of.max_attempts() {
        Some(most) => builder.max_attempts(most.get()),
        None => builder.unlimited_attempts(),
    };
    builder = match of.max_hint() {
        Some(longest) => builder.max_hint(longest),
        None => builder.unlimited_hint(),
    };
    if let Some(limit) = of.max_elapsed() {
        builder = builder.max_elapsed(limit);
    }
    if let Some(lived) = of.stable_after() {
        builder = builder.stable_after(lived);
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use stagger_core::Seed;

    use super::*;

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

    #[test]
    fn settings_without_effect_are_left_out() {
        for (policy, want) in [
            (
                "exponential base=17s cap=17s multiplier=3 jitter=±50% spread=34s",
                "constant base=17s jitter=±50% spread=34s",
            ),
            (
                "exponential base=1s cap=9s max-attempts=2 max-elapsed=5s",
                "constant base=1s jitter=full max-attempts=2 max-elapsed=5s",
            ),
            ("exponential base=5s cap=5s jitter=full floor=1s", "uniform range=1s..5s"),
            ("exponential base=5s cap=5s jitter=equal floor=1s", "constant base=5s jitter=equal"),
            (
                "exponential base=1s cap=30s multiplier=2 max-attempts=4",
                "exponential base=1s cap=4s multiplier=2 max-attempts=4",
            ),
            (
                "exponential base=4s cap=5s multiplier=6 max-attempts=inf",
                "exponential base=4s cap=5s multiplier=2 max-attempts=inf",
            ),
            ("exponential base=4s cap=20s multiplier=9", "exponential base=4s cap=20s multiplier=5"),
            ("exponential base=4s cap=20s multiplier=1.5", "exponential base=4s cap=9s multiplier=1.5"),
            (
                "exponential base=4s cap=20s multiplier=1.5 max-attempts=inf",
                "exponential base=4s cap=20s multiplier=1.5 max-attempts=inf",
            ),
            ("exponential base=2s cap=5s jitter=decorrelated max-attempts=2", "uniform range=2s..5s max-attempts=2"),
            ("exponential base=2s cap=5s jitter=decorrelated", "exponential base=2s cap=5s jitter=decorrelated"),
            ("constant base=2s", "constant base=2s"),
        ] {
            let policy: Policy = policy.parse().unwrap();
            assert_eq!(simplest(&policy), Some(want.parse().unwrap()), "{policy}");
        }
    }

    #[test]
    fn the_simplest_policy_has_the_same_bounds() {
        for policy in [
            "exponential base=1700ms cap=1700ms multiplier=3 jitter=±20% max-attempts=5",
            "exponential base=3s cap=3s jitter=full floor=500ms max-attempts=5",
            "exponential base=700ms cap=4200ms multiplier=9 jitter=equal max-attempts=5",
            "exponential base=2s cap=5s jitter=decorrelated max-attempts=2",
        ] {
            let policy: Policy = policy.parse().unwrap();
            let simple = simplest(&policy).unwrap();
            assert_ne!(simple, policy);
            let bounds = |policy: &Policy| (1..5).map(|retry| policy.bounds(retry)).collect::<Vec<_>>();
            assert_eq!(bounds(&simple), bounds(&policy), "{policy} {simple}");
        }
    }

    #[test]
    fn delays_that_are_all_equal_are_no_answer() {
        let policy: Policy = "exponential base=2s cap=9s jitter=full floor=4s max-attempts=2".parse().unwrap();
        assert_eq!(simplest(&policy), None);
    }
}
