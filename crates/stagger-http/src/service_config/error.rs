use core::fmt;

/// An error in a service config. It lists every problem, each with its path and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfigError {
    problems: Vec<String>,
}

impl ServiceConfigError {
    pub(super) fn one(problem: impl Into<String>) -> Self {
        Self { problems: vec![problem.into()] }
    }

    /// There is at least one problem.
    pub(super) const fn all(problems: Vec<String>) -> Self {
        Self { problems }
    }

    /// Returns `value` if there are no problems, and the error otherwise.
    pub(super) fn unless<T>(problems: Vec<String>, value: T) -> Result<T, Self> {
        if problems.is_empty() { Ok(value) } else { Err(Self { problems }) }
    }

    /// Returns the problems, in the order in which they were found.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(String::as_str)
    }
}

impl fmt::Display for ServiceConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems.join("; "))
    }
}

impl core::error::Error for ServiceConfigError {}
