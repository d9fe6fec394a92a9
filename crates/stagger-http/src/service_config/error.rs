use core::fmt;

/// Everything that is wrong with a service config, each with where it is and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfigError {
    faults: Vec<String>,
}

impl ServiceConfigError {
    pub(super) fn one(fault: impl Into<String>) -> Self {
        Self { faults: vec![fault.into()] }
    }

    /// `value`, unless there are faults.
    pub(super) fn unless<T>(faults: Vec<String>, value: T) -> Result<T, Self> {
        if faults.is_empty() { Ok(value) } else { Err(Self { faults }) }
    }

    /// The faults, in the order in which they were found.
    pub fn problems(&self) -> impl Iterator<Item = &str> {
        self.faults.iter().map(String::as_str)
    }
}

impl fmt::Display for ServiceConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.faults.join("; "))
    }
}

impl core::error::Error for ServiceConfigError {}
