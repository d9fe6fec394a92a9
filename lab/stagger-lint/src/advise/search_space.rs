//! The default policy and the search space for each purpose.

use core::time::Duration;

use stagger_core::{Jitter, Policy};

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
}
