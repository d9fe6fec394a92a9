//! The settings of a quiet period, and what can be wrong with them.

use core::fmt;
use core::time::Duration;

use super::period::QuietPeriod;
use super::state::QuietTrigger;
use crate::guards::guard::LimiterMode;
use crate::guards::hold::{HoldSettings, MAX_WAITING};
use crate::numbers::instant::nanos;
use crate::numbers::message::{Message, Value, words, write_all};

/// Builds a [`QuietPeriod`]: its settings before they are checked. [`build`](Self::build) reports every problem at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a builder does nothing until `build`"]
pub struct QuietPeriodBuilder {
    mode: LimiterMode,
    trigger: QuietTrigger,
    max: Duration,
    max_wait: Option<Duration>,
    max_waiting: u32,
    probe_wait: Duration,
}

/// The checked settings, lengths in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuietSettings {
    pub(super) hold: HoldSettings,
    pub(super) trigger: QuietTrigger,
    pub(super) max: u64,
    pub(super) probe_wait: u64,
}

const DAY: Duration = Duration::from_secs(86_400);

impl QuietPeriodBuilder {
    pub(super) const DEFAULT: Self = Self {
        mode: LimiterMode::Wait,
        trigger: QuietTrigger::Hints,
        max: Duration::from_secs(300),
        max_wait: None,
        max_waiting: 1_024,
        probe_wait: Duration::from_secs(30),
    };

    /// Sets whether calls wait, are rejected, or are only counted. Default: [`LimiterMode::Wait`].
    pub const fn mode(self, mode: LimiterMode) -> Self {
        Self { mode, ..self }
    }

    /// Sets what begins a pause. Default: [`QuietTrigger::Hints`].
    pub const fn trigger(self, trigger: QuietTrigger) -> Self {
        Self { trigger, ..self }
    }

    /// Sets the longest pause that a hint can cause: a longer hint counts as this one. Default: 5 min, as `max_hint` of
    /// policies. Range: more than 0, at most 24 h.
    pub const fn max(self, longest: Duration) -> Self {
        Self { max: longest, ..self }
    }

    /// Sets for how long a call waits at most, beside its own limits. If its turn will not come within this time, it is
    /// rejected at once. The time is counted anew when the pause is lengthened. Default: no limit but that of the call.
    /// Range: more than 0.
    pub const fn max_wait(self, longest: Duration) -> Self {
        Self { max_wait: Some(longest), ..self }
    }

    /// Sets how many calls wait at most; further ones are rejected. Default: 1,024. Range: `1..=1_000_000`.
    pub const fn max_waiting(self, calls: u32) -> Self {
        Self { max_waiting: calls, ..self }
    }

    /// Sets how long a probe may take; then another call becomes the probe. Default: 30 s. Range: more than 0.
    pub const fn probe_wait(self, longest: Duration) -> Self {
        Self { probe_wait: longest, ..self }
    }

    pub(super) const fn unchecked(self) -> QuietSettings {
        QuietSettings {
            hold: HoldSettings {
                mode: self.mode,
                max_wait: match self.max_wait {
                    Some(longest) => Some(nanos(longest)),
                    None => None,
                },
                max_waiting: self.max_waiting,
            },
            trigger: self.trigger,
            max: nanos(self.max),
            probe_wait: nanos(self.probe_wait),
        }
    }

    /// Creates the quiet period, open.
    ///
    /// # Errors
    /// Every problem at once, with the values and how to fix them.
    pub fn build(self) -> Result<QuietPeriod, QuietPeriodError> {
        use QuietPeriodProblem as Problem;
        let found = [
            (Problem::Max, self.max.is_zero() || self.max > DAY),
            (Problem::MaxWait, self.max_wait == Some(Duration::ZERO)),
            (Problem::MaxWaiting, self.max_waiting == 0 || self.max_waiting > MAX_WAITING),
            (Problem::ProbeWait, self.probe_wait.is_zero()),
        ];
        let mut problems = 0;
        for (problem, is_present) in found {
            if is_present {
                problems |= 1 << problem as u8;
            }
        }
        if problems != 0 {
            return Err(QuietPeriodError { problems, max: self.max, max_waiting: self.max_waiting });
        }
        Ok(QuietPeriod::of(self.unchecked()))
    }
}

/// Every problem in the settings of a quiet period, with the values and how to fix them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietPeriodError {
    pub(super) problems: u8,
    pub(super) max: Duration,
    pub(super) max_waiting: u32,
}

words! {
    /// One problem in the settings of a quiet period.
    #[repr(u8)]
    pub enum QuietPeriodProblem {
        /// The longest pause is 0, or longer than 24 h.
        Max = "max {} is outside the range: use more than 0s and at most 24h",
        /// The longest wait is 0, so every call would be rejected.
        MaxWait = "max_wait is 0s, so no call would wait: raise it, or use the mode fail_fast",
        /// The number of waiting calls is 0, or larger than can be counted.
        MaxWaiting = "max_waiting {} is outside the range of 1 to {}: use 1024, or the mode fail_fast for none",
        /// The longest wait for a probe is 0.
        ProbeWait = "probe_wait is 0s, so no probe could return in time: raise it",
    }
    const ALL;
    /// Returns the sentence about the problem, in which each `{}` stands for a value.
    const fn sentence;
}

impl QuietPeriodError {
    /// Returns the problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = QuietPeriodProblem> + '_ {
        QuietPeriodProblem::ALL.iter().copied().filter(|&problem| self.problems & (1 << problem as u8) != 0)
    }

    fn message(&self, problem: QuietPeriodProblem) -> Message<192> {
        let count = |n: u32| Value::Count(u64::from(n));
        let sentence = problem.sentence();
        match problem {
            QuietPeriodProblem::MaxWaiting => {
                Message::new().sentence(sentence, &[self.max_waiting, MAX_WAITING].map(count))
            }
            _ => Message::new().sentence(sentence, &[Value::Length(nanos(self.max))]),
        }
    }
}

impl fmt::Display for QuietPeriodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_all(f, self.problems().map(|problem| self.message(problem)))
    }
}

impl core::error::Error for QuietPeriodError {}
