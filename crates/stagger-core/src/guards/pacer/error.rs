use core::fmt;

use crate::guards::hold::MAX_WAITING;
use crate::numbers::message::words;
use crate::numbers::message::{Message, Value, write_all};

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
