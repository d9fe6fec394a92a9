//! Compares the distributions of delays of two libraries, or of a library and of the formula of one in another
//! language.

use core::time::Duration;

use stagger::schedule::draw;
use stagger::{Policy, Seed};

/// The number of calls that are drawn on each side.
const CALLS: usize = 10_000;

/// The largest distance between two empirical distributions of [`CALLS`] draws each that counts as chance: with equal
/// distributions, a comparison fails less than once in 10^6 (`sqrt(ln(2 / 10^-6) / CALLS)`). The distance of a jitter
/// of 40 % from one of 50 % is 0.1, that of 45 % is 0.05.
pub(super) const CHANCE: f64 = 0.0381;

/// Parses a policy, and asserts that the page has it in this form.
pub(super) fn printed(page: &str, policy: &str) -> Policy {
    assert!(page.contains(policy), "the page does not have {policy:?}");
    canonical(policy)
}

/// Parses a policy that prints in the same form.
pub(super) fn canonical(policy: &str) -> Policy {
    let parsed: Policy = policy.parse().unwrap();
    assert_eq!(parsed.to_string(), policy, "the form is not canonical");
    parsed
}

/// Runs a test on a paused clock, which advances with sleeps only.
pub(super) fn paused(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(test);
}

/// Asserts that `before`, which returns the delays of one call, and `after` draw each of the first `retries` delays
/// from the same distribution. The draws of `after` have fixed seeds.
#[track_caller]
pub(super) fn assert_same<I>(mut before: impl FnMut() -> I, after: &Policy, retries: usize)
where
    I: Iterator<Item = Duration>,
{
    let ours = columns(|seed| after.schedule(seed).take(retries).collect(), retries);
    let theirs = columns(|_| before().take(retries).collect(), retries);
    for (at, (ours, theirs)) in ours.into_iter().zip(theirs).enumerate() {
        let distance = distance(&ours, &theirs);
        assert!(distance < CHANCE, "retry {}: distance {distance:.4} from {after}", at + 1);
    }
}

/// Returns the sorted delays of each retry over [`CALLS`] calls.
pub(super) fn columns(mut call: impl FnMut(Seed) -> Vec<Duration>, retries: usize) -> Vec<Vec<f64>> {
    let mut columns = vec![Vec::with_capacity(CALLS); retries];
    for id in 0..CALLS as u64 {
        let delays = call(Seed::new(1).for_call(id));
        assert_eq!(delays.len(), retries, "the series has fewer delays than requested");
        for (column, delay) in columns.iter_mut().zip(delays) {
            column.push(delay.as_secs_f64());
        }
    }
    columns.iter_mut().for_each(|column| column.sort_by(f64::total_cmp));
    columns
}

/// Returns the Kolmogorov–Smirnov distance: the largest difference between the two empirical distribution functions.
///
/// Delays within a microsecond count as equal, because other libraries round to single precision or to whole
/// milliseconds where delays do not vary.
pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    let (mut at, mut bt, mut largest) = (0, 0, 0.0_f64);
    while at < a.len() && bt < b.len() {
        let here = a[at].min(b[bt]) + 1e-6;
        at += a[at..].partition_point(|&delay| delay <= here);
        bt += b[bt..].partition_point(|&delay| delay <= here);
        largest = largest.max((at as f64 / a.len() as f64 - bt as f64 / b.len() as f64).abs());
    }
    largest
}

/// Random numbers, uniform on `[0, 1)` and the same in each run of the tests.
pub(super) struct Numbers {
    seed: Seed,
    drawn: u64,
}

impl Numbers {
    pub(super) fn new(seed: Seed) -> Self {
        Self { seed, drawn: 0 }
    }

    pub(super) fn next(&mut self) -> f64 {
        self.drawn += 1;
        let bits = self.seed.for_call(self.drawn).get();
        draw(Duration::ZERO, Duration::from_nanos((1 << 53) - 1), bits).as_nanos() as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }
}

/// Returns the delays of a new call on each call, with different random numbers. `delay` gets the number of the retry,
/// from 1.
pub(super) fn calls<F>(delay: F) -> impl FnMut() -> Box<dyn Iterator<Item = Duration>>
where
    F: Fn(i32, &mut Numbers) -> f64 + Copy + 'static,
{
    let mut calls = 0;
    move || {
        calls += 1;
        let mut numbers = Numbers::new(Seed::new(calls));
        Box::new((1..).map(move |n| Duration::from_secs_f64(delay(n, &mut numbers))))
    }
}

#[test]
fn jitters_of_45_and_50_percent_are_distinguished() {
    let column = |policy: &str| {
        let policy: Policy = policy.parse().unwrap();
        columns(|seed| policy.schedule(seed).take(1).collect(), 1).remove(0)
    };
    let fifty = column("constant delay=1s jitter=±50%");
    assert!(distance(&fifty, &column("constant delay=1s jitter=±45%")) > CHANCE);
    // The same distribution with other draws: twice the delay, divided by two.
    let other: Vec<_> = column("constant delay=2s jitter=±50%").iter().map(|delay| delay / 2.0).collect();
    assert!(distance(&fifty, &other) < CHANCE);
}
