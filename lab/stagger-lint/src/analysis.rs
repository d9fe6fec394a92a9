use core::num::{NonZeroU32, NonZeroU64};
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{HintMode, Jitter, Policy, schedule::Backoff};

use crate::{DeploymentContext, Purpose};

/// The input of the rules: a policy in its context, with properties that several rules use. Everything about delays is
/// read from the policy's forecasts.
pub(super) struct PolicyAnalysis<'a> {
    pub(super) policy: &'a Policy,
    pub(super) context: &'a DeploymentContext,
    /// The bounds of the delay before each possible retry, from retry 1, at most [`HORIZON`] of them.
    pub(super) delays: Vec<(Duration, Duration)>,
}

/// Maximum number of retries to examine. Doubling turns 10 ms into a day within 24.
const HORIZON: u32 = 64;
/// More attempts than this count as unlimited.
const COUNTABLE: u32 = 100_000;
/// Assumed maximum duration of a call, which delays that double without a cap soon exceed.
const LIFETIME: Duration = Duration::from_secs(365 * 86_400);

/// Time that an attempt takes, in seconds: the mean of the simulator's network.
const ROUND_TRIP: f64 = 0.05;
/// A share of the clients that changes no figure.
const NEGLIGIBLE: f64 = 0.01;

impl<'a> PolicyAnalysis<'a> {
    pub(super) fn new(policy: &'a Policy, context: &'a DeploymentContext) -> Self {
        let last = match policy.max_attempts() {
            Some(attempts) => (attempts.get() - 1).min(HORIZON),
            None => HORIZON,
        };
        let limit = policy.max_elapsed().unwrap_or(LIFETIME);
        let mut delays = Vec::new();
        for n in 1..=last {
            match policy.elapsed_bounds(n) {
                // No call lasts long enough for this retry.
                Some((least, _)) if least > limit => break,
                _ => {}
            }
            let Some(bounds) = policy.bounds(n) else { break };
            delays.push(bounds);
        }
        Self { policy, context, delays }
    }

    pub(super) fn retries(&self) -> bool {
        !self.delays.is_empty()
    }

    /// Returns the number of retries whose delays are known.
    pub(super) fn known_retries(&self) -> u32 {
        self.delays.len() as u32
    }

    /// Returns the time that the server needs to accept each client once, if it can be spread out.
    pub(super) fn window(&self) -> Option<Duration> {
        if self.context.is_waited_for() || self.has_single_client() {
            return None;
        }
        self.context.min_recovery_time()
    }

    /// Returns whether there is known to be only one client, which cannot be synchronized with others.
    pub(super) fn has_single_client(&self) -> bool {
        self.context.clients == Some(NonZeroU64::MIN)
    }

    pub(super) fn is_jittered(&self) -> bool {
        self.delays.iter().any(|(least, most)| least < most)
    }

    pub(super) fn longest(&self) -> Duration {
        let longest = self.delays.iter().map(|(_, most)| *most).max().unwrap_or_default();
        longest.min(self.policy.max_elapsed().unwrap_or(Duration::MAX))
    }

    pub(super) fn grows(&self) -> bool {
        match self.policy.backoff() {
            Backoff::Exponential { multiplier, .. } => {
                *multiplier > 1.0 || self.policy.jitter() == Jitter::Decorrelated
            }
            Backoff::Linear { step, .. } => !step.is_zero(),
            _ => false,
        }
    }

    /// Returns whether a reset of the attempt count has any effect.
    pub(super) fn restarts_anything(&self) -> bool {
        let changes = self.delays.windows(2).any(|pair| pair[0] != pair[1]);
        let limited = self.attempts().is_some() || self.policy.max_elapsed().is_some();
        let stops = matches!(self.policy.backoff(), Backoff::Stop);
        !stops && (changes || limited || !self.policy.spread().is_zero())
    }

    /// Returns the maximum number of attempts; `None` if unlimited.
    pub(super) fn attempts(&self) -> Option<u32> {
        match self.policy.backoff() {
            Backoff::Stop => Some(1),
            _ => self.policy.max_attempts().map(NonZeroU32::get),
        }
    }

    /// Returns how many attempts there may be, for people.
    pub(super) fn times(&self) -> String {
        match self.attempts() {
            Some(attempts) => format!("up to {attempts} times"),
            None => "an unlimited number of times".to_owned(),
        }
    }

    /// Returns the share of clients that wait exactly the cap before retry `n`, with a precision of 0.2 %; 0 if it is
    /// below `least`.
    pub(super) fn share_at_cap(&self, n: u32, least: f64) -> f64 {
        let (Some(cap), Some((shortest, longest))) = (self.policy.cap(), self.policy.bounds(n)) else { return 0.0 };
        if shortest == cap && longest == cap {
            return 1.0;
        }
        if longest != cap {
            return 0.0;
        }
        // One quantile decides for most policies.
        match self.policy.quantile(n, 1.0 - least) {
            Some(delay) if delay >= cap => {}
            _ => return 0.0,
        }
        // Finds the share that waits less than the cap by repeated quartering: four rounds give a 256th.
        let (mut below, mut width) = (0.0, 1.0);
        for _ in 0..4 {
            width /= 4.0;
            let Some(delays) = self.policy.quantiles(n, [1.0, 2.0, 3.0].map(|part| below + part * width)) else {
                return 0.0;
            };
            below += delays.partition_point(|delay| *delay < cap) as f64 * width;
        }
        if below > 0.0 { 1.0 - below - width / 2.0 } else { 1.0 }
    }

    /// Returns the time over which the first attempts of clients that lost their connections together are spread: the
    /// spread or, without one, the interval of the first delay. `None` if there is no attempt.
    pub(super) fn first_wave(&self) -> Option<Duration> {
        let spread = self.policy.spread();
        match self.delays.first() {
            Some(_) if !spread.is_zero() => Some(spread),
            Some((least, most)) => Some(most.saturating_sub(*least)),
            // After a spread, a lost connection makes an attempt even if it is the only one.
            None if !spread.is_zero() && self.context.purpose == Some(Purpose::Reconnecting) => Some(spread),
            None => None,
        }
    }

    /// Returns the mean number of retries that a client makes within this time after its first attempt has failed.
    pub(super) fn retries_within(&self, time: Duration) -> f64 {
        // Without a spread, the first attempt follows the first delay.
        let first = if self.policy.spread().is_zero() { 2 } else { 1 };
        let limit = self.policy.max_elapsed().unwrap_or(time).min(time).as_secs_f64();
        // Of the time of the retry, which is a sum of independent delays.
        let (mut mean, mut variance) = (0.0, 0.0_f64);
        let mut retries = 0.0;
        let mut delay = ROUND_TRIP;
        for nth in first..=self.known_retries() {
            let (Some(next), Some((least, most))) = (self.policy.mean(nth), self.policy.bounds(nth)) else { break };
            delay = next.as_secs_f64() + ROUND_TRIP;
            mean += delay;
            variance += most.saturating_sub(least).as_secs_f64().powi(2) / 12.0;
            // The logistic approximation of a normal distribution.
            let deviations = (limit - mean) / variance.sqrt().max(1e-9);
            let share = 1.0 / (1.0 + (-1.702 * deviations).exp());
            if share < NEGLIGIBLE {
                return retries;
            }
            retries += share;
        }
        // Further retries have the last delay.
        let more = (limit - mean).max(0.0) / delay;
        let Some(attempts) = self.attempts() else { return retries + more };
        let left = f64::from(attempts - 1).max(retries) - retries;
        retries + more.min(left)
    }

    /// Returns the shortest of the deadline, the lease and the invocation limit, with its name.
    pub(super) fn time_limit(&self) -> Option<(&'static str, Duration)> {
        let known = self.context;
        let limits = [("deadline", known.deadline), ("lease", known.lease), ("invocation", known.invocation)];
        limits.into_iter().filter_map(|(what, limit)| Some((what, limit?))).min_by_key(|(_, limit)| *limit)
    }

    /// Returns the server's usual hint if the policy waits for it instead of ending the call.
    pub(super) fn followed_hint(&self) -> Option<Duration> {
        let hint = self.context.retry_after?;
        let limits = [self.policy.max_hint(), self.policy.max_elapsed()];
        let is_too_long = limits.into_iter().flatten().any(|limit| hint > limit);
        if is_too_long || !self.retries() { None } else { Some(hint) }
    }

    /// Returns by how much following a hint after each failure can prolong the longest delays of a call.
    fn hints_add(&self, hint: Duration, retries: u32) -> Duration {
        let longer = |(_, most): &(Duration, Duration)| match self.policy.hint_mode() {
            HintMode::Exact => hint.saturating_sub(*most),
            HintMode::Clamp(above) => hint.saturating_sub(*most).min(above),
            _ => {
                let above = scaled(hint, self.policy.hint_spread().as_f64()).max(*most);
                hint.saturating_add(above).saturating_sub(*most)
            }
        };
        let known = self.delays.iter().take(retries as usize).map(longer);
        let unknown = self.delays.last().map_or(Duration::ZERO, longer);
        let rest = unknown.saturating_mul(retries.saturating_sub(self.known_retries()));
        known.fold(rest, Duration::saturating_add)
    }

    /// Returns the longest time from the start of a call to the end of its last attempt; `None` if it is unlimited, or
    /// has too many attempts to add up. Attempts take their timeout, if known. Hints are followed after every failure.
    pub(super) fn worst_case(&self) -> Option<Duration> {
        let timeout = self.context.attempt_timeout.unwrap_or_default();
        // `max_elapsed` limits the start of the last attempt.
        let limit = self.policy.max_elapsed().map(|limit| limit.saturating_add(timeout));
        [self.longest_attempts(timeout), limit].into_iter().flatten().min()
    }

    /// Returns how long all attempts take with the longest delays between them, without the limit of the elapsed time.
    fn longest_attempts(&self, timeout: Duration) -> Option<Duration> {
        let attempts = self.attempts()?;
        if attempts > COUNTABLE {
            return None;
        }
        let mut waits = match attempts {
            1 => self.policy.spread(),
            _ => self.policy.elapsed_bounds(attempts - 1)?.1,
        };
        if let Some(hint) = self.followed_hint() {
            waits = waits.saturating_add(self.hints_add(hint, attempts - 1));
        }
        Some(waits.saturating_add(timeout.saturating_mul(attempts)))
    }
}

/// Formats a duration with no more digits than say anything.
pub(super) fn brief(length: Duration) -> String {
    let decimals = match length.as_secs() {
        0..10 => 2,
        10..120 => 1,
        _ => 0,
    };
    format!("{:.decimals$}", Compact(length))
}

/// Multiplies a duration by a factor of at least 0; saturates.
pub(super) fn scaled(length: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(length.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

/// Formats bounds as a range, or as one duration if they are equal.
pub(super) fn from_to((least, most): (Duration, Duration)) -> String {
    if least == most { brief(most) } else { format!("{} to {}", brief(least), brief(most)) }
}

/// Rounds a duration up to a value that people would choose.
pub(super) fn round_up(length: Duration) -> Duration {
    let unit: u64 = match length.as_millis() {
        0..1_000 => 10,
        1_000..10_000 => 100,
        10_000..120_000 => 1_000,
        _ => 10_000,
    };
    let millis = u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX / 2);
    Duration::from_millis(millis.div_ceil(unit).saturating_mul(unit))
}

pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a share in whole percent, never rounded to 0 % or 100 %.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p <= 0.0 => "0%".to_owned(),
        p if p >= 100.0 => "100%".to_owned(),
        p if p < 1.0 => "less than 1%".to_owned(),
        p if p > 99.0 => "more than 99%".to_owned(),
        p => format!("{p:.0}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(policy: &str, context: DeploymentContext, ask: impl FnOnce(&PolicyAnalysis<'_>) -> T) -> T {
        ask(&PolicyAnalysis::new(&policy.parse().unwrap(), &context))
    }

    #[test]
    fn only_possible_retries_are_examined() {
        for (policy, want) in [
            ("exponential max-attempts=4", 3),
            ("exponential max-attempts=1", 0),
            ("stop max-attempts=9", 0),
            ("exponential max-attempts=inf", 64),
            ("constant base=10s jitter=none max-attempts=9 max-elapsed=35s", 3),
        ] {
            assert_eq!(with(policy, DeploymentContext::default(), |analysis| analysis.delays.len()), want, "{policy}");
        }
    }

    #[test]
    fn the_share_at_the_cap_matches_the_distribution() {
        for (policy, retry, want) in [
            ("socket.io", 2, 0.0),
            ("socket.io", 3, 0.3),
            ("socket.io", 4, 0.9),
            ("socket.io", 5, 1.0),
            ("exponential base=1s cap=5s", 9, 0.0),
            ("exponential base=1s cap=5s jitter=none", 9, 1.0),
        ] {
            let got = with(policy, DeploymentContext::default(), |analysis| analysis.share_at_cap(retry, 0.1));
            assert!((got - want).abs() < 0.01, "{policy}, retry {retry}: {got}");
        }
    }

    #[test]
    fn the_worst_case_adds_delays_and_attempts_up_to_the_limit() {
        let timeout = DeploymentContext::default().attempt_timeout(Duration::from_secs(10));
        for (policy, context, want) in [
            ("exponential base=1s cap=30s max-attempts=4", DeploymentContext::default(), Some(7)),
            ("exponential base=1s cap=30s max-attempts=4 spread=3s", timeout, Some(50)),
            ("exponential base=1s cap=30s max-attempts=4 max-elapsed=5s", timeout, Some(15)),
            ("exponential max-attempts=inf max-elapsed=5s", DeploymentContext::default(), Some(5)),
            ("exponential max-attempts=inf", timeout, None),
            ("exponential max-attempts=4294967295", timeout, None),
            ("exponential max-attempts=4294967295 max-elapsed=5s", timeout, Some(15)),
            ("stop spread=3s", timeout, Some(13)),
        ] {
            let got = with(policy, context, |analysis| analysis.worst_case());
            assert_eq!(got, want.map(Duration::from_secs), "{policy}");
        }
    }

    #[test]
    fn durations_are_rounded_up_to_readable_values() {
        for (millis, want) in [(0, 0), (1, 10), (1_001, 1_100), (12_345, 13_000), (123_456, 130_000)] {
            assert_eq!(round_up(Duration::from_millis(millis)), Duration::from_millis(want));
        }
        assert!(round_up(Duration::MAX) >= Duration::from_secs(1 << 40));
    }

    #[test]
    fn thousands_are_separated() {
        for (number, want) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), want);
        }
    }

    #[test]
    fn a_share_is_rounded_to_0_or_100_percent_only_if_exact() {
        for (share, want) in
            [(0.0, "0%"), (0.001, "less than 1%"), (0.3, "30%"), (0.999, "more than 99%"), (1.0, "100%")]
        {
            assert_eq!(percent(share), want);
        }
    }
}
