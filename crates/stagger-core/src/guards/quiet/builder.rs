//! The settings of a quiet period, and what can be wrong with them.

use core::fmt;
use core::time::Duration;

use super::period::QuietPeriod;
use super::state::QuietTrigger;
use crate::guards::hold::HoldSettings;
use crate::numbers::instant::nanos;
use crate::numbers::message::{Message, Value, words, write_all};

/// Builds a [`QuietPeriod`]: its settings before they are checked. [`build`](Self::build) reports every problem at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a builder does nothing until `build`"]
pub struct QuietPeriodBuilder(QuietSettings);

/// The settings, lengths in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuietSettings {
    pub(super) hold: HoldSettings,
    pub(super) trigger: QuietTrigger,
    pub(super) max: u64,
    pub(super) probe_wait: u64,
}

const DAY: u64 = 86_400_000_000_000;

impl QuietSettings {
    pub(super) const DEFAULT: Self = Self {
        hold: HoldSettings::DEFAULT,
        trigger: QuietTrigger::Hints,
        max: 300_000_000_000,
        probe_wait: 30_000_000_000,
    };
}

impl QuietPeriodBuilder {
    pub(super) const DEFAULT: Self = Self(QuietSettings::DEFAULT);

    /// Sets what begins a pause. Default: [`QuietTrigger::Hints`].
    pub const fn trigger(self, trigger: QuietTrigger) -> Self {
        Self(QuietSettings { trigger, ..self.0 })
    }

    /// Sets the longest pause that a hint can cause: a longer hint counts as this one. Default: 5 min, as `max_hint` of
    /// policies. Range: more than 0, at most 24 h.
    pub const fn max(self, longest: Duration) -> Self {
        Self(QuietSettings { max: nanos(longest), ..self.0 })
    }

    /// Sets for how long a call waits at most, beside its own limits. If its turn will not come within this time, it is
    /// rejected at once. The time is counted anew when the pause is lengthened. Default: no limit but that of the call.
    pub const fn max_wait(self, longest: Duration) -> Self {
        Self(QuietSettings { hold: self.0.hold.max_wait(longest), ..self.0 })
    }

    /// Sets how many calls wait at most; further ones are rejected. With 0 every call is rejected at once, for callers
    /// that hold a thread or a client. Default: 1,024. Range: up to 1,000,000; more counts as that.
    pub const fn max_waiting(self, calls: u32) -> Self {
        Self(QuietSettings { hold: self.0.hold.max_waiting(calls), ..self.0 })
    }

    /// Sets how long a probe may take; then another call becomes the probe. Default: 30 s. Range: more than 0.
    pub const fn probe_wait(self, longest: Duration) -> Self {
        Self(QuietSettings { probe_wait: nanos(longest), ..self.0 })
    }

    /// Creates the quiet period, open.
    ///
    /// # Errors
    /// Every problem at once, with the values and how to fix them.
    pub fn build(self) -> Result<QuietPeriod, QuietPeriodError> {
        let QuietSettings { max, probe_wait, .. } = self.0;
        let mut problems = 0;
        if max == 0 || max > DAY {
            problems |= 1 << QuietPeriodProblem::Max as u8;
        }
        if probe_wait == 0 {
            problems |= 1 << QuietPeriodProblem::ProbeWait as u8;
        }
        if problems != 0 {
            return Err(QuietPeriodError { problems, max });
        }
        Ok(QuietPeriod::of(self.0))
    }
}

/// Every problem in the settings of a quiet period, with the values and how to fix them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuietPeriodError {
    problems: u8,
    max: u64,
}

words! {
    /// One problem in the settings of a quiet period.
    #[repr(u8)]
    pub enum QuietPeriodProblem {
        /// The longest pause is 0, or longer than 24 h.
        Max = "max {} is outside the range: use more than 0s and at most 24h",
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
}

impl fmt::Display for QuietPeriodError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = Value::Length(self.max);
        write_all(f, self.problems().map(|problem| Message::<192>::new().sentence(problem.sentence(), &[max])))
    }
}

impl core::error::Error for QuietPeriodError {}
