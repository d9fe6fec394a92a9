use core::fmt;
use core::time::Duration;

use crate::guards::hold::MAX_WAITING;
use crate::numbers::instant::nanos;
use crate::numbers::message::words;
use crate::numbers::message::{Message, Value, write_all};

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
