use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;

use super::windows::{Window, Windows};

/// Whether a system survives an outage: the states that it goes through from the start of the outage to the horizon.
///
/// Judged by the requests that arrive in windows of at least a second and a hundred expected requests, aligned at the
/// start of the outage. A window is good if at least 90 % of its requests are served in the end, also after the horizon:
/// the simulation continues under the same load until they are settled. The system is up at the start of the outage, is
/// down from a window that is not good, and is up again from the first of five consecutive good windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// Every window is good.
    NeverFell,
    /// The system was down once, and is up at the horizon.
    Recovered {
        /// Time from the end of the outage until the system was up again; 0 if it was up before.
        after: Duration,
    },
    /// The system was down more than once.
    Relapsed {
        /// Time at which it fell for the second time, from the start of the simulation.
        at: Duration,
        /// Whether it is up at the horizon.
        is_up: bool,
    },
    /// The system was down once, and is down at the horizon.
    StillDown {
        /// Time at which it fell, from the start of the simulation.
        since: Duration,
    },
}

impl Verdict {
    /// Returns whether the system is up at the horizon.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        !matches!(self, Self::StillDown { .. } | Self::Relapsed { is_up: false, .. })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverFell => f.write_str("never fell"),
            Self::Recovered { after } => write!(f, "recovered {:.2} after the outage", Compact(*after)),
            Self::Relapsed { at, is_up } => {
                write!(f, "relapsed at {:.2}, {} at the horizon", Compact(*at), if *is_up { "up" } else { "down" })
            }
            Self::StillDown { since } => write!(f, "has been down since {:.2}", Compact(*since)),
        }
    }
}

/// The number of consecutive good windows after which a system is up.
pub(crate) const GOOD_WINDOWS: usize = 5;

/// The share of the requests of a good window that are served, in percent.
pub(crate) const GOOD_PERCENT: u64 = 90;

/// The windows in which a system changes its state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct History {
    /// The first window of each time that it is down.
    falls: Vec<usize>,
    /// The first of the good windows that end each of them, except the last if it is down at the end.
    rises: Vec<usize>,
}

impl History {
    /// Returns the history of these windows, of which one is good if at least `percent` of its requests were served.
    pub(super) fn of(windows: &[Window], percent: u64) -> Self {
        let (mut history, mut good) = (Self::default(), 0);
        for (nth, window) in windows.iter().enumerate() {
            good = if window.is_good(percent) { good + 1 } else { 0 };
            if history.is_up() && good == 0 {
                history.falls.push(nth);
            } else if !history.is_up() && good == GOOD_WINDOWS {
                history.rises.push(nth + 1 - GOOD_WINDOWS);
            }
        }
        history
    }

    pub(super) fn is_up(&self) -> bool {
        self.falls.len() == self.rises.len()
    }

    /// Returns the window in which the system fell first.
    pub(super) fn first_fall(&self) -> Option<usize> {
        self.falls.first().copied()
    }

    /// Returns the window from which the system is up until the end, if it fell and is up.
    pub(super) fn last_rise(&self) -> Option<usize> {
        self.rises.last().copied().filter(|_| self.is_up())
    }

    pub(super) fn verdict(&self, windows: &Windows, outage_end: Duration) -> Verdict {
        match (&self.falls[..], &self.rises[..]) {
            ([], _) => Verdict::NeverFell,
            (&[_], &[rise]) => Verdict::Recovered { after: windows.start_of(rise).saturating_sub(outage_end) },
            (&[fall], _) => Verdict::StillDown { since: windows.start_of(fall) },
            (&[_, second, ..], _) => Verdict::Relapsed { at: windows.start_of(second), is_up: self.is_up() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// Returns the verdict on windows of a second, from an outage of two seconds at 3 s; `-` is a bad window.
    fn verdict(windows: &str) -> Verdict {
        let shares: Vec<_> = windows.chars().map(|c| Window::of_share(if c == '-' { 89 } else { 90 })).collect();
        let second = 1_000_000;
        History::of(&shares, GOOD_PERCENT).verdict(&Windows::new(100.0, 3 * second, 100 * second), seconds(5))
    }

    #[test]
    fn each_sequence_of_windows_has_its_verdict() {
        for (windows, want) in [
            ("", Verdict::NeverFell),
            ("++++++++", Verdict::NeverFell),
            ("--+++++", Verdict::Recovered { after: Duration::ZERO }),
            ("-+++++", Verdict::Recovered { after: Duration::ZERO }),
            ("----+++++++", Verdict::Recovered { after: seconds(2) }),
            ("--++++-+++++", Verdict::Recovered { after: seconds(5) }),
            ("--++++", Verdict::StillDown { since: seconds(3) }),
            ("++------++++", Verdict::StillDown { since: seconds(5) }),
            ("-+++++-", Verdict::Relapsed { at: seconds(9), is_up: false }),
            ("-+++++--+++++", Verdict::Relapsed { at: seconds(9), is_up: true }),
            ("-+++++--+++++-+", Verdict::Relapsed { at: seconds(9), is_up: false }),
        ] {
            assert_eq!(verdict(windows), want, "{windows}");
        }
    }

    #[test]
    fn a_verdict_says_whether_the_system_is_up() {
        for (windows, is_up, text) in [
            ("+", true, "never fell"),
            ("----+++++", true, "recovered 2s after the outage"),
            ("-+++++-+++++", true, "relapsed at 9s, up at the horizon"),
            ("-+++++-", false, "relapsed at 9s, down at the horizon"),
            ("+-", false, "has been down since 4s"),
        ] {
            let verdict = verdict(windows);
            assert_eq!((verdict.is_up(), &*verdict.to_string()), (is_up, text), "{windows}");
        }
    }
}
