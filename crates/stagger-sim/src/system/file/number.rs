use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;

/// A number of a file, which can be changed by its path.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FileNumber {
    /// Its path, such as `users.rate`, `edge.orders-database.timeout` or `trigger.1.for`.
    pub path: String,
    /// What it counts.
    pub unit: Unit,
    /// Its value: that of the file, or the default.
    pub value: f64,
}

/// What a number of a file counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// A length of time, in seconds.
    Seconds,
    /// A rate per second.
    PerSecond,
    /// A whole number.
    Count,
    /// A share, from 0 to 1.
    Share,
    /// Any other number.
    Factor,
}

impl Unit {
    /// Returns a value as the file would have it: `1.5s`, `50/s`, `3`, `0.9`.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        // The conversions saturate, and a file rejects what is out of its range.
        match self {
            Self::Seconds => {
                let length = Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(Duration::MAX);
                Compact(length).to_string()
            }
            Self::PerSecond => format!("{value}/s"),
            Self::Count => format!("{}", value.round() as u64),
            Self::Share | Self::Factor => format!("{value}"),
        }
    }

    /// Parses a value as the file would have it.
    ///
    /// # Errors
    /// What is wrong, and what is expected.
    pub fn parse(self, text: &str) -> Result<f64, String> {
        super::table::number(self, text)
    }

    /// Returns whether only whole numbers are values.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::Count)
    }
}

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.path, self.unit.text(self.value))
    }
}
