use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Distribution {
    pub min: Duration,
    pub max: Duration,
    pub mean: Duration,
    pub p10: Duration,
    pub p50: Duration,
    pub p90: Duration,
    pub p99: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    /// Number of the retry, from 1.
    pub retry: u32,
    pub delay: Distribution,
    /// Total wait up to the retry, including the spread.
    pub elapsed: Distribution,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Forecast {
    pub policy: Policy,
    pub rows: Vec<Row>,
    pub shown: Shown,
}

/// Which retries of the policy the rows show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    All,
    /// The first of this many retries.
    FirstOf(u32),
    /// The first of an unlimited number of retries.
    FirstOfUnlimited,
}

/// Default number of rows: one screen, or enough to show the progression if retries are unlimited.
const DEFAULT_ROWS: u32 = 20;
const UNLIMITED_ROWS: u32 = 10;

impl Forecast {
    /// Computes the forecast of the first `retries` retries, or of the default number.
    pub(super) fn new(policy: Policy, retries: Option<u32>) -> Self {
        let all = policy.max_attempts().map(|attempts| attempts.get() - 1);
        let wanted = retries.unwrap_or(if all.is_some() { DEFAULT_ROWS } else { UNLIMITED_ROWS });
        let count = all.map_or(wanted, |all| all.min(wanted));
        // A policy that never retries has no rows, whatever its maximum number of attempts.
        let rows: Vec<Row> = (1..=count).map_while(|retry| row(&policy, retry)).collect();
        let ended = rows.len() < count as usize;
        let shown = match all {
            _ if ended => Shown::All,
            Some(all) if all > count => Shown::FirstOf(all),
            Some(_) => Shown::All,
            None => Shown::FirstOfUnlimited,
        };
        Self { policy, rows, shown }
    }
}

fn row(policy: &Policy, retry: u32) -> Option<Row> {
    let delay = distribution(policy.bounds(retry)?, policy.mean(retry)?, policy.quantiles(retry, SHARES)?);
    let elapsed = distribution(
        policy.elapsed_bounds(retry)?,
        policy.elapsed_mean(retry)?,
        policy.elapsed_quantiles(retry, SHARES)?,
    );
    Some(Row { retry, delay, elapsed })
}

const SHARES: [f64; 4] = [0.1, 0.5, 0.9, 0.99];

fn distribution((min, max): (Duration, Duration), mean: Duration, quantiles: [Duration; SHARES.len()]) -> Distribution {
    let [p10, p50, p90, p99] = quantiles;
    Distribution { min, max, mean, p10, p50, p90, p99 }
}

/// The waits of one client whose attempts all fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Client {
    pub spread: Duration,
    pub delays: Vec<Duration>,
}

impl Client {
    /// Returns the total wait up to each retry.
    pub(super) fn elapsed(&self) -> impl Iterator<Item = Duration> {
        self.delays.iter().scan(self.spread, |waited, delay| {
            *waited = waited.saturating_add(*delay);
            Some(*waited)
        })
    }
}

/// Draws the first `count` clients of a seed, each with the random stream of a call of its own.
pub(super) fn draw(policy: &Policy, seed: Seed, count: usize, retries: usize) -> Vec<Client> {
    let client = |id: usize| {
        let key = seed.for_call(id as u64);
        Client { spread: policy.first_spread(key), delays: policy.schedule(key).take(retries).collect() }
    };
    (0..count).map(client).collect()
}

/// Formats a duration with about three digits, for humans: `1.51s`, `26.5s`, `1m13s`.
pub fn brief(length: Duration) -> String {
    let nanos = length.as_nanos();
    // The number printed before the unit.
    let number = match nanos {
        0..1_000 => nanos,
        1_000..1_000_000 => nanos / 1_000,
        1_000_000..1_000_000_000 => nanos / 1_000_000,
        1_000_000_000..60_000_000_000 => nanos / 1_000_000_000,
        _ => 100,
    };
    let decimals = match number {
        0..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    format!("{:.decimals$}", Compact(length))
}

/// Formats an interval: `0–16s`; a single duration if both ends are equal.
pub(super) fn span(min: Duration, max: Duration) -> String {
    if min == max {
        brief(min)
    } else if min.is_zero() {
        format!("0–{}", brief(max))
    } else {
        format!("{}–{}", brief(min), brief(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forecast(policy: &str, retries: Option<u32>) -> Forecast {
        Forecast::new(policy.parse().unwrap(), retries)
    }

    #[test]
    fn the_rows_are_the_retries_of_the_policy() {
        for (policy, retries, want) in [
            ("exponential max-attempts=6", None, (5, Shown::All)),
            ("exponential max-attempts=6", Some(3), (3, Shown::FirstOf(5))),
            ("exponential max-attempts=6", Some(9), (5, Shown::All)),
            ("exponential max-attempts=6", Some(5), (5, Shown::All)),
            ("exponential max-attempts=1000", None, (20, Shown::FirstOf(999))),
            ("exponential max-attempts=inf", None, (10, Shown::FirstOfUnlimited)),
            ("exponential max-attempts=inf", Some(12), (12, Shown::FirstOfUnlimited)),
            ("exponential max-attempts=1", None, (0, Shown::All)),
            ("stop max-attempts=inf", None, (0, Shown::All)),
        ] {
            let got = forecast(policy, retries);
            assert_eq!((got.rows.len(), got.shown), want, "{policy}, {retries:?}");
            assert!(got.rows.iter().map(|row| row.retry).eq(1..=got.rows.len() as u32));
        }
    }

    #[test]
    fn quantiles_are_ordered() {
        for jitter in ["none", "full", "equal", "decorrelated", "±20%"] {
            let policy = format!("exponential base=1s cap=30s jitter={jitter} spread=3s max-attempts=8");
            for row in forecast(&policy, None).rows {
                for Distribution { min, max, mean, p10, p50, p90, p99 } in [row.delay, row.elapsed] {
                    assert!([min, p10, p50, p90, p99, max].is_sorted(), "{jitter}: {row:?}");
                    assert!((min..=max).contains(&mean), "{jitter}: {row:?}");
                }
            }
        }
    }

    fn clients(seed: u64, count: usize) -> Vec<Client> {
        let policy = "exponential base=1s cap=30s spread=5s".parse().unwrap();
        draw(&policy, Seed::new(seed), count, 4)
    }

    #[test]
    fn a_seed_reproduces_its_clients_for_any_count() {
        assert_eq!(clients(7, 3), clients(7, 9)[..3]);
        assert_ne!(clients(7, 3), clients(8, 3));
    }

    #[test]
    fn no_two_clients_wait_the_same() {
        let drawn = clients(1, 50);
        for (i, one) in drawn.iter().enumerate() {
            assert!(!drawn[..i].iter().any(|other| other.delays == one.delays || other.spread == one.spread));
        }
    }

    #[test]
    fn the_total_wait_includes_the_spread() {
        let client = Client { spread: Duration::from_secs(5), delays: [1, 2].map(Duration::from_secs).to_vec() };
        assert!(client.elapsed().eq([6, 8].map(Duration::from_secs)));
    }

    #[test]
    fn durations_have_about_three_digits() {
        for (nanos, want) in [
            (0, "0s"),
            (1_512_345_678, "1.51s"),
            (26_540_000_000, "26.5s"),
            (123_456_789, "123ms"),
            (1_500_000, "1.5ms"),
            (73_400_000_000, "1m13s"),
            (7_200_000_000_000, "2h"),
        ] {
            assert_eq!(brief(Duration::from_nanos(nanos)), want);
        }
    }

    #[test]
    fn an_empty_interval_is_one_duration() {
        let second = Duration::from_secs(1);
        assert_eq!(span(second, second), "1s");
        assert_eq!(span(Duration::ZERO, second), "0–1s");
        assert_eq!(span(second / 2, second), "500ms–1s");
    }
}
