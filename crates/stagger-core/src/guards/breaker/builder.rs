//! The settings of a circuit breaker, and what can be wrong with them.

use core::fmt;
use core::time::Duration;

use super::calls::{CallWindow, MAX_CALLS};
use super::circuit::CircuitBreaker;
use super::rules::{Rules, SlowRule};
use super::state::MAX_PROBES;
use super::time::TimeWindow;
use super::window::{Record, Window};
use crate::numbers::instant::nanos;
use crate::numbers::message::{Message, Value, words, write_all};
use crate::numbers::random::Seed;
use crate::numbers::ratio::Ratio;
use crate::policy;
use crate::policy::{DelayList, Policy};

/// Builds a [`CircuitBreaker`]: its settings before they are checked. [`build`](Self::build) reports every problem at
/// once.
///
/// Each rule that is set trips the breaker by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct CircuitBreakerBuilder {
    seed: Seed,
    consecutive: Option<u32>,
    failure_ratio: Option<Ratio>,
    slow: Option<(Duration, Ratio)>,
    window: Option<Window>,
    min_calls: Option<u32>,
    open: Policy,
    probes: u32,
    healthy_probes: Option<u32>,
    probe_wait: Duration,
}

/// The default open times.
const OPEN: Policy = policy!(exponential(secs(5), secs(60)).jitter(Jitter::Equal));
const DAY: Duration = Duration::from_secs(86_400);

impl CircuitBreaker {
    /// Creates a builder for a breaker with rules of its own; it needs at least one.
    pub const fn builder(seed: Seed) -> CircuitBreakerBuilder {
        CircuitBreakerBuilder::new(seed)
    }
}

impl CircuitBreakerBuilder {
    pub(super) const fn new(seed: Seed) -> Self {
        Self {
            seed,
            consecutive: None,
            failure_ratio: None,
            slow: None,
            window: None,
            min_calls: None,
            open: OPEN,
            probes: 1,
            healthy_probes: None,
            probe_wait: Duration::from_secs(30),
        }
    }

    /// Trips on the `n`-th failure in a row. Range: at least 1.
    ///
    /// The cheapest rule: a success costs one load, and it never reads the clock. It suits one caller at a time, and
    /// servers that are either up or down. With many concurrent calls, one success among many failures restarts the
    /// count.
    pub const fn consecutive(self, n: u32) -> Self {
        Self { consecutive: Some(n), ..self }
    }

    /// Trips when `failures / calls >= ratio` in the [`window`](Self::window), once it holds
    /// [`min_calls`](Self::min_calls). Range: more than 0, at most 1. For a ratio such as two thirds, use
    /// [`Ratio::from_counts`], which rounds down.
    ///
    /// The rule is checked after every result: a success also trips the breaker if it brings the window to `min_calls`.
    pub const fn failure_ratio(self, ratio: Ratio) -> Self {
        Self { failure_ratio: Some(ratio), ..self }
    }

    /// Trips when `slow calls / calls >= ratio` in the [`window`](Self::window), once it holds
    /// [`min_calls`](Self::min_calls). A call is slow if it takes *longer* than `after`, whether it succeeds or fails.
    /// Range: `ratio` more than 0, at most 1; `after` more than 0, at most 24 h.
    ///
    /// Reads the clock at both ends of every call. A slow probe counts as a failed one.
    pub const fn slow_ratio(self, after: Duration, ratio: Ratio) -> Self {
        Self { slow: Some((after, ratio)), ..self }
    }

    /// Sets the window over which the ratios are computed. Default: the last 100 calls.
    pub const fn window(self, window: Window) -> Self {
        Self { window: Some(window), ..self }
    }

    /// Sets how many calls a window must hold before a ratio can trip the breaker. Default: 20, or the whole window of
    /// calls if that is smaller. Range: at least 1, at most the window of calls.
    pub const fn min_calls(self, n: u32) -> Self {
        Self { min_calls: Some(n), ..self }
    }

    /// Sets how long the breaker stays open: the delays of this policy, one after the other, until the server stays
    /// healthy. Default: `exponential base=5s cap=60s jitter=equal`.
    ///
    /// The open times restart with the first once the breaker has been closed for the policy's `stable_after`; if that
    /// is not set, for as long as it was last open. They are drawn with the breaker's seed, so that the breakers of a
    /// fleet do not send their probes at the same time. A policy that can draw 0, such as full jitter without a floor,
    /// is rejected.
    ///
    /// If the failure that trips the breaker has a hint of the server, the hint determines the open time, in the
    /// policy's hint mode: with the default, `hint + U[0, max(ceiling, hint · hint_spread)]`. A hint above `max_hint`
    /// counts as `max_hint`, and *do not retry* counts as no hint. Attempt and time limits of the policy have no effect
    /// here.
    pub const fn open(self, policy: Policy) -> Self {
        Self { open: policy, ..self }
    }

    /// Sets how many probes a half-open breaker admits at the same time, and in total, before it decides. Default: 1.
    /// Range: `1..=10_000`.
    pub const fn probes(self, n: u32) -> Self {
        Self { probes: n, ..self }
    }

    /// Sets how many of the probes must find the server healthy. The breaker closes with the last of these, and opens
    /// again with the first probe that makes them impossible. Default: all of them. Range: from 1 to all.
    pub const fn healthy_probes(self, n: u32) -> Self {
        Self { healthy_probes: Some(n), ..self }
    }

    /// Sets how long the breaker waits for its probes, counted from the last one that it admitted. Default: 30 s.
    /// Range: more than 0.
    ///
    /// Probes that are still in flight then count as failed, so the breaker opens again and their results no longer
    /// count: neither a server that never answers nor a lost permit can hold the breaker half-open. A probe that
    /// returns late, but before any other call, counts.
    pub const fn probe_wait(self, longest: Duration) -> Self {
        Self { probe_wait: longest, ..self }
    }

    /// Creates the breaker, closed.
    ///
    /// # Errors
    /// Every problem at once, with the values and how to fix them.
    pub fn build(self) -> Result<CircuitBreaker, CircuitBreakerError> {
        use CircuitBreakerProblem as Problem;
        let counts = self.failure_ratio.is_some() || self.slow.is_some();
        let window = self.window.unwrap_or(Window::Calls(100));
        let most = match window {
            Window::Calls(calls) => calls,
            Window::Time(_) => u32::MAX,
        };
        let min_calls = self.min_calls.unwrap_or(most.min(20));
        let healthy_probes = self.healthy_probes.unwrap_or(self.probes);
        let (slow_after, slow_ratio) = match self.slow {
            Some((after, ratio)) => (Some(after), Some(ratio)),
            None => (None, None),
        };
        // The message names the first ratio that is out of range.
        let mut ratios = [self.failure_ratio, slow_ratio].into_iter().flatten();
        let wrong_ratio = ratios.find(|ratio| *ratio == Ratio::ZERO || ratio.is_above_one());
        let found = [
            (Problem::NoRule, self.consecutive.is_none() && !counts),
            (Problem::NoFailure, self.consecutive == Some(0)),
            (Problem::Ratio, wrong_ratio.is_some()),
            (Problem::SlowAfter, matches!(slow_after, Some(after) if after.is_zero() || after > DAY)),
            (
                Problem::Window,
                match window {
                    Window::Calls(calls) => calls == 0 || calls > MAX_CALLS,
                    Window::Time(length) => length < Duration::from_millis(100) || length > DAY,
                },
            ),
            // An empty window is a problem of its own.
            (Problem::MinCalls, min_calls == 0 && most > 0 || min_calls > most),
            (Problem::NothingToCount, !counts && (self.window.is_some() || self.min_calls.is_some())),
            (Problem::OpenTime, can_be_zero(&self.open)),
            (
                Problem::Probes,
                self.probes == 0 || self.probes > MAX_PROBES || healthy_probes == 0 || healthy_probes > self.probes,
            ),
            (Problem::ProbeWait, self.probe_wait.is_zero()),
        ];
        let mut problems = 0;
        for (problem, is_present) in found {
            if is_present {
                problems |= 1 << problem as u8;
            }
        }
        if problems != 0 {
            return Err(CircuitBreakerError {
                problems,
                ratio: wrong_ratio.unwrap_or_default(),
                slow_after: slow_after.unwrap_or_default(),
                window,
                min_calls,
                probes: self.probes,
                healthy_probes,
            });
        }
        let rules = Rules {
            consecutive: self.consecutive.unwrap_or(0),
            failure_ratio: self.failure_ratio,
            slow: self.slow.map(|(after, ratio)| SlowRule { after: nanos(after), ratio }),
            min_calls,
            probes: self.probes,
            healthy_probes,
            probe_wait: nanos(self.probe_wait),
        };
        let record = match window {
            _ if !counts => Record::Nothing,
            Window::Calls(calls) => Record::Calls(CallWindow::new(calls)),
            Window::Time(length) => Record::Time(TimeWindow::new(nanos(length))),
        };
        Ok(CircuitBreaker::of(rules, record, self.open, self.seed))
    }
}

/// Returns whether a delay of this policy can be 0, or does not exist. Only a list can begin with a longer delay than
/// it continues with.
fn can_be_zero(policy: &Policy) -> bool {
    (1..=DelayList::MAX_LEN as u32).any(|n| match policy.bounds(n) {
        Some((least, _)) => least.is_zero(),
        None => true,
    })
}

/// Every problem in the settings of a circuit breaker, with the values and how to fix them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitBreakerError {
    pub(super) problems: u16,
    /// The first ratio that is out of range.
    pub(super) ratio: Ratio,
    pub(super) slow_after: Duration,
    pub(super) window: Window,
    pub(super) min_calls: u32,
    pub(super) probes: u32,
    pub(super) healthy_probes: u32,
}

words! {
    /// One problem in the settings of a circuit breaker.
    #[repr(u8)]
    pub enum CircuitBreakerProblem {
        /// No rule is set, so nothing trips the breaker.
        NoRule = "no rule is set, so nothing trips it: set consecutive, failure_ratio or slow_ratio",
        /// `consecutive` is 0, so the breaker would be open before any failure.
        NoFailure = "consecutive is 0, so it would never close: use at least 1",
        /// A ratio is 0, or above 1.
        Ratio = "ratio {} is 0 or above 100%: use more than 0 and at most 1",
        /// The length from which a call is slow is 0, or longer than 24 h.
        SlowAfter = "slow calls after {} is outside the range: use more than 0s and at most 24h",
        /// The window is empty, or larger than the breaker can count.
        Window = "the window of {}{} cannot be counted: use 1 to {} calls, or a time between 100ms and 24h",
        /// `min_calls` is 0, or larger than the window of calls, so the ratio would never trip the breaker.
        MinCalls = "min_calls {} is 0, or more than the window holds: use at least 1 and at most the window",
        /// A window or `min_calls` is set, but no ratio.
        NothingToCount = "window and min_calls are for ratios: drop them, or set failure_ratio or slow_ratio",
        /// The policy of the open time can draw 0, or has no delay at all.
        OpenTime = "the open time can be 0s: give its policy a delay, and a floor or another jitter than full",
        /// `probes` is outside `1..=10_000`, or `healthy_probes` is outside `1..=probes`.
        Probes =
            "probes {} with healthy_probes {} is outside the range: use 1 to {} probes, and 1 to all of them healthy",
        /// `probe_wait` is 0.
        ProbeWait = "probe_wait is 0s, so no probe could return in time: raise it",
    }
    const ALL;
    /// Returns the sentence about the problem, in which each `{}` stands for a value.
    const fn sentence;
}

impl CircuitBreakerError {
    /// Returns the problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = CircuitBreakerProblem> + '_ {
        CircuitBreakerProblem::ALL.iter().copied().filter(|&problem| self.problems & (1 << problem as u8) != 0)
    }

    fn message(&self, problem: CircuitBreakerProblem) -> Message<192> {
        let count = |n: u32| Value::Count(u64::from(n));
        let text = Message::new();
        let sentence = problem.sentence();
        match problem {
            CircuitBreakerProblem::Ratio => text.sentence(sentence, &[Value::Share(self.ratio)]),
            CircuitBreakerProblem::SlowAfter => text.sentence(sentence, &[Value::Length(nanos(self.slow_after))]),
            CircuitBreakerProblem::MinCalls => text.sentence(sentence, &[count(self.min_calls)]),
            CircuitBreakerProblem::Probes => {
                text.sentence(sentence, &[self.probes, self.healthy_probes, MAX_PROBES].map(count))
            }
            _ => {
                let (window, unit) = match self.window {
                    Window::Calls(calls) => (count(calls), " calls"),
                    Window::Time(length) => (Value::Length(nanos(length)), ""),
                };
                text.sentence(sentence, &[window, Value::Text(unit), count(MAX_CALLS)])
            }
        }
    }
}

impl fmt::Display for CircuitBreakerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_all(f, self.problems().map(|problem| self.message(problem)))
    }
}

impl core::error::Error for CircuitBreakerError {}
