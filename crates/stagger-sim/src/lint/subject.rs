use core::num::NonZeroU32;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, schedule::Backoff};

use super::Circumstances;
use super::circumstances::Purpose;

/// A policy in its circumstances, with what several rules want to know of it. Everything about delays is read from the
/// policy's forecasts.
pub(super) struct Subject<'a> {
    pub(super) policy: &'a Policy,
    pub(super) circumstances: &'a Circumstances,
    /// The bounds of each retry that can come about, from retry 1, at most [`HORIZON`] of them.
    pub(super) delays: Vec<(Duration, Duration)>,
}

/// How many retries are looked at. Doubling takes 10 ms to a day in 24.
const HORIZON: u32 = 64;
/// More attempts than this are as good as no limit.
const COUNTABLE: u32 = 100_000;
/// No call lives longer; delays that double without a cap soon do.
const LIFETIME: Duration = Duration::from_secs(365 * 86_400);

impl<'a> Subject<'a> {
    pub(super) fn new(policy: &'a Policy, circumstances: &'a Circumstances) -> Self {
        let last = policy.max_attempts().map_or(HORIZON, |attempts| (attempts.get() - 1).min(HORIZON));
        let limit = policy.max_elapsed().unwrap_or(LIFETIME);
        let starts_in_time = |n: &u32| policy.elapsed_bounds(*n).is_none_or(|(least, _)| least <= limit);
        let delays = (1..=last).take_while(starts_in_time).map_while(|n| policy.bounds(n)).collect();
        Self { policy, circumstances, delays }
    }

    /// There is a retry.
    pub(super) fn retries(&self) -> bool {
        !self.delays.is_empty()
    }

    /// It is known that there is only one client, which nobody can be in step with.
    pub(super) fn alone(&self) -> bool {
        self.circumstances.clients.is_some_and(|clients| clients.get() == 1)
    }

    /// Some delay is drawn from more than one length.
    pub(super) fn is_jittered(&self) -> bool {
        self.delays.iter().any(|(least, most)| least < most)
    }

    /// The longest delay that can come about.
    pub(super) fn longest(&self) -> Duration {
        let longest = self.delays.iter().map(|(_, most)| *most).max().unwrap_or_default();
        self.policy.max_elapsed().map_or(longest, |limit| longest.min(limit))
    }

    pub(super) fn purpose(&self) -> Option<Purpose> {
        self.circumstances.purpose
    }

    /// The ceilings grow.
    pub(super) fn grows(&self) -> bool {
        match self.policy.backoff() {
            Backoff::Exponential { multiplier, .. } => {
                *multiplier > 1.0 || self.policy.jitter() == stagger_core::Jitter::Decorrelated
            }
            Backoff::Linear { step, .. } => !step.is_zero(),
            _ => false,
        }
    }

    /// Something is different after the count of attempts has started again.
    pub(super) fn restarts_anything(&self) -> bool {
        let policy = self.policy;
        let changes = self.delays.windows(2).any(|pair| pair[0] != pair[1]);
        let limited = self.attempts().is_some() || policy.max_elapsed().is_some();
        let stops = matches!(policy.backoff(), Backoff::Stop);
        !stops && (changes || limited || !policy.spread().is_zero())
    }

    /// How many attempts there can be; `None` if there is no limit.
    pub(super) fn attempts(&self) -> Option<u32> {
        match self.policy.backoff() {
            Backoff::Stop => Some(1),
            _ => self.policy.max_attempts().map(NonZeroU32::get),
        }
    }

    /// The share of clients that wait exactly the cap before retry `n`, to a fifth of a per cent; 0 where it is less
    /// than `least`.
    pub(super) fn share_at_cap(&self, n: u32, least: f64) -> f64 {
        let (Some(cap), Some((shortest, longest))) = (self.policy.cap(), self.policy.bounds(n)) else { return 0.0 };
        if shortest == cap && longest == cap {
            return 1.0;
        }
        // One share tells for most policies.
        if longest != cap || self.policy.quantile(n, 1.0 - least).is_none_or(|delay| delay < cap) {
            return 0.0;
        }
        // The share of those that wait for less, by quarters of quarters: four rounds are a 256th.
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

    /// The longest time from the start of a call to the end of its last attempt; `None` if there is no end, or none
    /// that is worth counting up to. Attempts take their time-out, if that is known.
    pub(super) fn worst(&self) -> Option<Duration> {
        let timeout = self.circumstances.attempt_timeout.unwrap_or_default();
        let waits_and_attempts = self.attempts().filter(|attempts| *attempts <= COUNTABLE).and_then(|attempts| {
            let waits = match attempts {
                1 => self.policy.spread(),
                _ => self.policy.elapsed_bounds(attempts - 1)?.1,
            };
            Some(waits.saturating_add(timeout.saturating_mul(attempts)))
        });
        // The limit is on the start of the last attempt.
        let limit = self.policy.max_elapsed().map(|limit| limit.saturating_add(timeout));
        match (waits_and_attempts, limit) {
            (Some(sum), Some(limit)) => Some(sum.min(limit)),
            (sum, limit) => sum.or(limit),
        }
    }
}

/// A length of time for people.
pub(super) fn brief(length: Duration) -> String {
    let decimals = match length.as_secs() {
        0..10 => 2,
        10..120 => 1,
        _ => 0,
    };
    format!("{:.decimals$}", Compact(length))
}

/// From the least to the most, or the one length that both are.
pub(super) fn from_to((least, most): (Duration, Duration)) -> String {
    if least == most { brief(most) } else { format!("{} to {}", brief(least), brief(most)) }
}

/// A length of time that people would choose: not shorter than this, in whole units.
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

/// A whole number with its thousands apart.
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

/// A share in whole per cents, never rounded to all or nothing.
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

    fn with<T>(policy: &str, circumstances: Circumstances, ask: impl FnOnce(&Subject<'_>) -> T) -> T {
        ask(&Subject::new(&policy.parse().unwrap(), &circumstances))
    }

    #[test]
    fn the_retries_that_are_looked_at_are_those_that_can_come_about() {
        for (policy, want) in [
            ("exponential max-attempts=4", 3),
            ("exponential max-attempts=1", 0),
            ("stop max-attempts=9", 0),
            ("exponential max-attempts=inf", 64),
            ("constant base=10s jitter=none max-attempts=9 max-elapsed=35s", 3),
        ] {
            assert_eq!(with(policy, Circumstances::default(), |subject| subject.delays.len()), want, "{policy}");
        }
    }

    #[test]
    fn the_share_at_the_cap_is_that_of_the_distribution() {
        for (policy, retry, want) in [
            ("socket.io", 2, 0.0),
            ("socket.io", 3, 0.3),
            ("socket.io", 4, 0.9),
            ("socket.io", 5, 1.0),
            ("exponential base=1s cap=5s", 9, 0.0),
            ("exponential base=1s cap=5s jitter=none", 9, 1.0),
        ] {
            let got = with(policy, Circumstances::default(), |subject| subject.share_at_cap(retry, 0.1));
            assert!((got - want).abs() < 0.01, "{policy}, retry {retry}: {got}");
        }
    }

    #[test]
    fn the_worst_case_counts_waits_and_attempts_up_to_the_limit() {
        let timeout = Circumstances::default().attempt_timeout(Duration::from_secs(10));
        for (policy, circumstances, want) in [
            ("exponential base=1s cap=30s max-attempts=4", Circumstances::default(), Some(7)),
            ("exponential base=1s cap=30s max-attempts=4 spread=3s", timeout, Some(50)),
            ("exponential base=1s cap=30s max-attempts=4 max-elapsed=5s", timeout, Some(15)),
            ("exponential max-attempts=inf max-elapsed=5s", Circumstances::default(), Some(5)),
            ("exponential max-attempts=inf", timeout, None),
            ("exponential max-attempts=4294967295", timeout, None),
            ("exponential max-attempts=4294967295 max-elapsed=5s", timeout, Some(15)),
            ("stop spread=3s", timeout, Some(13)),
        ] {
            assert_eq!(
                with(policy, circumstances, |subject| subject.worst()),
                want.map(Duration::from_secs),
                "{policy}"
            );
        }
    }

    #[test]
    fn lengths_are_rounded_up_to_what_people_choose() {
        for (millis, want) in [(0, 0), (1, 10), (1_001, 1_100), (12_345, 13_000), (123_456, 130_000)] {
            assert_eq!(round_up(Duration::from_millis(millis)), Duration::from_millis(want));
        }
        assert!(round_up(Duration::MAX) >= Duration::from_secs(1 << 40));
    }

    #[test]
    fn thousands_stand_apart() {
        for (number, want) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), want);
        }
    }

    #[test]
    fn a_share_is_all_or_nothing_only_where_it_is() {
        for (share, want) in
            [(0.0, "0%"), (0.001, "less than 1%"), (0.3, "30%"), (0.999, "more than 99%"), (1.0, "100%")]
        {
            assert_eq!(percent(share), want);
        }
    }
}
