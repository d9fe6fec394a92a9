//! The settings of a shared window, before they are checked.

use core::fmt;
use core::time::Duration;

use super::claim::WindowLimits;
use stagger_core::Ratio;

/// The largest minimum per second.
const LARGEST: u64 = 1_000_000;

/// Settings as they are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowSettings {
    /// How long a call counts. Whole milliseconds.
    pub ttl: Duration,
    /// How many retries each call allows.
    pub ratio: Ratio,
    /// How many retries per second all processes have in addition.
    pub min_per_second: u64,
}

/// A problem in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WindowProblem {
    /// The window is shorter than 5 s, or longer than 60 s.
    Length(Duration),
    /// The ratio is above 1.
    Ratio(Ratio),
    /// The minimum per second is above a million.
    Minimum(u64),
}

impl WindowSettings {
    /// A window of 10 s, a ratio of 20 %, and 10 retries per second in addition.
    pub const DEFAULT: Self = Self { ttl: Duration::from_secs(10), ratio: Ratio::percent(20), min_per_second: 10 };

    /// Returns the limits of the protocol.
    ///
    /// # Errors
    /// Every problem at once.
    pub fn limits(&self) -> Result<WindowLimits, Vec<WindowProblem>> {
        let Self { ttl, ratio, min_per_second } = *self;
        let mut problems = Vec::new();
        if !(Duration::from_secs(5)..=Duration::from_secs(60)).contains(&ttl) {
            problems.push(WindowProblem::Length(ttl));
        }
        if ratio.is_above_one() {
            problems.push(WindowProblem::Ratio(ratio));
        }
        if min_per_second > LARGEST {
            problems.push(WindowProblem::Minimum(min_per_second));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(0) * 1_000;
        Ok(WindowLimits { ttl, ratio: u64::from(ratio.as_millionths()), min_per_second })
    }
}

impl fmt::Display for WindowProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(ttl) => write!(f, "ttl {ttl:?} is outside 5s to 60s: change it"),
            Self::Ratio(ratio) => write!(f, "ratio {ratio} is above 1: lower it"),
            Self::Minimum(retries) => write!(f, "{retries} retries per second are above 1000000: lower the minimum"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_in_millionths_and_microseconds() {
        let settings = WindowSettings { ttl: Duration::from_micros(7_500_999), ..WindowSettings::DEFAULT };
        let want = WindowLimits { ttl: 7_500_000, ratio: 200_000, min_per_second: 10 };
        assert_eq!(settings.limits(), Ok(want));
        assert_eq!((want.slot_length(), want.minimum()), (375_000, 75_000_000));
    }

    #[test]
    fn every_problem_is_found_at_once() {
        for ttl in [Duration::from_millis(4_999), Duration::from_millis(60_001)] {
            let ratio = Ratio::percent(101);
            let settings = WindowSettings { ttl, ratio, min_per_second: 1_000_001 };
            let want = [WindowProblem::Length(ttl), WindowProblem::Ratio(ratio), WindowProblem::Minimum(1_000_001)];
            assert_eq!(settings.limits(), Err(want.to_vec()));
        }
    }
}
