//! The settings of a pacer, and what can be wrong with them.

use core::fmt;
use core::time::Duration;

use super::limiter::Pacer;
use crate::guards::guard::LimiterMode;
use crate::guards::hold::{HoldSettings, MAX_WAITING};
use crate::numbers::instant::nanos;
use crate::numbers::message::{Message, Value, words, write_all};

/// Builds a [`Pacer`]: its settings before they are checked. [`build`](Self::build) reports every problem at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a builder does nothing until `build`"]
pub struct PacerBuilder {
    mode: LimiterMode,
    max_wait: Option<Duration>,
    max_waiting: u32,
}

impl PacerBuilder {
    pub(super) const DEFAULT: Self = Self { mode: LimiterMode::Wait, max_wait: None, max_waiting: 1_024 };

    /// Sets whether calls wait, are rejected, or are only counted. Default: [`LimiterMode::Wait`].
    pub const fn mode(self, mode: LimiterMode) -> Self {
        Self { mode, ..self }
    }

    /// Sets for how long a call waits at most, beside its own limits. If its turn will not come within this time at the
    /// present rate, it is rejected at once. Default: no limit but that of the call. Range: more than 0.
    pub const fn max_wait(self, longest: Duration) -> Self {
        Self { max_wait: Some(longest), ..self }
    }

    /// Sets how many calls wait at most; further ones are rejected. Default: 1,024. Range: `1..=1_000_000`.
    pub const fn max_waiting(self, calls: u32) -> Self {
        Self { max_waiting: calls, ..self }
    }

    pub(super) const fn unchecked(self) -> HoldSettings {
        HoldSettings {
            mode: self.mode,
            max_wait: match self.max_wait {
                Some(longest) => Some(nanos(longest)),
                None => None,
            },
            max_waiting: self.max_waiting,
        }
    }

    /// Creates the pacer, passive.
    ///
    /// # Errors
    /// Every problem at once, with the values and how to fix them.
    pub fn build(self) -> Result<Pacer, PacerError> {
        let mut problems = 0;
        if self.max_wait == Some(Duration::ZERO) {
            problems |= 1 << PacerProblem::MaxWait as u8;
        }
        if self.max_waiting == 0 || self.max_waiting > MAX_WAITING {
            problems |= 1 << PacerProblem::MaxWaiting as u8;
        }
        if problems != 0 {
            return Err(PacerError { problems, max_waiting: self.max_waiting });
        }
        Ok(Pacer::of(self.unchecked()))
    }
}

/// Every problem in the settings of a pacer, with the values and how to fix them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacerError {
    pub(super) problems: u8,
    pub(super) max_waiting: u32,
}

words! {
    /// One problem in the settings of a pacer.
    #[repr(u8)]
    pub enum PacerProblem {
        /// The longest wait is 0, so every held call would be rejected.
        MaxWait = "max_wait is 0s, so no call would wait: raise it, or use the mode fail_fast",
        /// The number of waiting calls is 0, or larger than can be counted.
        MaxWaiting = "max_waiting {} is outside the range of 1 to {}: use 1024, or the mode fail_fast for none",
    }
    const ALL;
    /// Returns the sentence about the problem, in which each `{}` stands for a value.
    const fn sentence;
}

impl PacerError {
    /// Returns the problems, in a fixed order.
    pub fn problems(&self) -> impl Iterator<Item = PacerProblem> + '_ {
        PacerProblem::ALL.iter().copied().filter(|&problem| self.problems & (1 << problem as u8) != 0)
    }
}

impl fmt::Display for PacerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = [self.max_waiting, MAX_WAITING].map(|n| Value::Count(u64::from(n)));
        write_all(f, self.problems().map(|problem| Message::<192>::new().sentence(problem.sentence(), &values)))
    }
}

impl core::error::Error for PacerError {}
