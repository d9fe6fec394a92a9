use core::fmt;

/// Why a system cannot be simulated: all problems, in a fixed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemError {
    pub(super) problems: Vec<SystemProblem>,
}

/// One problem of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemProblem {
    part: SystemPart,
    message: String,
}

/// The part of a system that has a problem. Parts are numbered from 0, in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SystemPart {
    /// The users, the horizon, or the system as a whole.
    Whole,
    /// A service.
    Service(usize),
    /// An edge.
    Edge(usize),
    /// A trigger.
    Trigger(usize),
}

impl SystemError {
    /// Returns the problems.
    #[must_use]
    pub fn problems(&self) -> &[SystemProblem] {
        &self.problems
    }
}

impl SystemProblem {
    pub(super) fn new(part: SystemPart, message: impl Into<String>) -> Self {
        Self { part, message: message.into() }
    }

    /// Returns the part that has the problem.
    #[must_use]
    pub const fn part(&self) -> SystemPart {
        self.part
    }
}

impl fmt::Display for SystemProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }
}

impl core::error::Error for SystemError {}
