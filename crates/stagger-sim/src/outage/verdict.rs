//! Whether a system survives: windows of requests, and the verdict on them.

use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;

/// Whether a system survives an outage: the states that it goes through from the start of the outage to the horizon.
///
/// Judged by the requests that arrive in windows of at least a second and a hundred expected requests, aligned at the
/// start of the outage. A window is good if at least 90 % of its requests are served in the end, also after the
/// horizon: the simulation continues under the same load until they are settled. The system is up at the start of the
/// outage, is down from a window that is not good, and is up again from the first of five consecutive good windows.
///
/// A run is not decided before the end of the outage and six windows, and while a backlog of a system that is up grows.
/// A system that is down is said to stay down if it has been down, after the outage, for a minute, sixteen windows, and
/// twice the longest call with all queues that it may pass; and if, in the second half of that time, neither its
/// backlogs, its failures nor its attempts shrink, no cache fills, and (in the first ten minutes) no guard lives on
/// savings. What shrinks is told from chance at 99 %, and what cannot be told apart from it is not decided. A system that
/// has relapsed three times goes on like that: its state at the horizon is decided.
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
    /// The system was down once, is down at the horizon, and stays down.
    StillDown {
        /// Time at which it fell, from the start of the simulation.
        since: Duration,
    },
    /// The horizon is too short: the system may recover after it, or fall.
    NotDecided,
}

impl Verdict {
    /// Returns whether the system is up at the horizon; false if that is not decided.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        matches!(self, Self::NeverFell | Self::Recovered { .. } | Self::Relapsed { is_up: true, .. })
    }

    /// Returns whether the system is down at the horizon; false if that is not decided.
    #[must_use]
    pub const fn is_down(&self) -> bool {
        matches!(self, Self::StillDown { .. } | Self::Relapsed { is_up: false, .. })
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
            Self::NotDecided => f.write_str("is not decided at the horizon"),
        }
    }
}

/// The number of consecutive good windows after which a system is up.
pub(crate) const GOOD_WINDOWS: usize = 5;

/// With so many relapses, a system neither recovers nor stays down.
const RELAPSES: usize = 3;

/// The share of the requests of a good window that are served, in percent.
pub(crate) const GOOD_PERCENT: u64 = 90;

/// The windows in which a system changes its state.
#[derive(Clone, Debug, Default, PartialEq)]
struct History {
    /// The first window of each time that it is down.
    falls: Vec<usize>,
    /// The first of the good windows that end each of them, except the last if it is down at the end.
    rises: Vec<usize>,
}

impl History {
    /// Returns the history of these windows, of which one is good if at least `percent` of its requests were served.
    fn of(windows: &[Window], percent: u64) -> Self {
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

    fn is_up(&self) -> bool {
        self.falls.len() == self.rises.len()
    }

    /// Returns the window in which the system fell first.
    fn first_fall(&self) -> Option<usize> {
        self.falls.first().copied()
    }

    /// Returns the window from which the system is up until the end, if it fell and is up.
    fn last_rise(&self) -> Option<usize> {
        if self.is_up() { self.rises.last().copied() } else { None }
    }

    fn verdict(&self, windows: &Windows, outage_end: Duration) -> Verdict {
        match (&self.falls[..], &self.rises[..]) {
            ([], _) => Verdict::NeverFell,
            (&[_], &[rise]) => Verdict::Recovered { after: windows.start_of(rise).saturating_sub(outage_end) },
            (&[fall], _) => Verdict::StillDown { since: windows.start_of(fall) },
            (&[_, second, ..], _) => Verdict::Relapsed { at: windows.start_of(second), is_up: self.is_up() },
        }
    }
}

/// Returns the shortest horizon at which a system with so many requests per second can be seen to recover from a fault
/// that ends at `end`.
pub(crate) fn shortest_horizon(end: Duration, rate: f64) -> Duration {
    shortest_horizon_of(end, Duration::from_micros(Windows::width_for(rate)))
}

fn shortest_horizon_of(end: Duration, width: Duration) -> Duration {
    end.saturating_add(width.saturating_mul(GOOD_WINDOWS as u32 + 1))
}

/// Number of windows before the end that the final share is computed from.
const LAST_WINDOWS: usize = 10;

/// The windows of a run, and what is concluded from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JudgedWindows {
    windows: Windows,
    /// End of the fault.
    end: Duration,
    /// The share of the requests of a good window that are served, in percent.
    percent: u64,
}

impl JudgedWindows {
    /// Creates empty windows, for a mean number of requests per second and a fault between two times, in microseconds.
    pub(crate) fn new(rate: f64, fault: [u64; 2], horizon: u64, percent: u64) -> Self {
        Self { windows: Windows::new(rate, fault[0], horizon), end: Duration::from_micros(fault[1]), percent }
    }

    pub(crate) fn arrived(&mut self, at: u64) {
        self.windows.arrived(at);
    }

    pub(crate) fn served(&mut self, arrived_at: u64) {
        self.windows.served(arrived_at);
    }

    pub(crate) fn verdict(&self) -> Verdict {
        self.history().verdict(&self.windows, self.end)
    }

    /// Returns the time from the end of the fault until the system is up for the rest of the simulation.
    pub(crate) fn recovery(&self) -> Option<Duration> {
        let history = self.history();
        if !history.is_up() {
            return None;
        }
        Some(match history.last_rise() {
            Some(rise) => self.windows.start_of(rise).saturating_sub(self.end),
            None => Duration::ZERO,
        })
    }

    pub(crate) fn fell_at(&self) -> Option<Duration> {
        self.history().first_fall().map(|fall| self.windows.start_of(fall))
    }

    /// Returns the time since which the system is down, if it is down at the horizon.
    pub(crate) fn down_since(&self) -> Option<Duration> {
        let history = self.history();
        let fall = if history.is_up() { None } else { history.falls.last() };
        fall.map(|&fall| self.windows.start_of(fall))
    }

    /// Returns whether the system has come back and fallen again several times: a longer run would show it in either
    /// state.
    pub(crate) fn comes_and_goes(&self) -> bool {
        self.history().falls.len() > RELAPSES
    }

    /// Returns the share of the requests that failed, of each window that starts at `from` or later.
    pub(crate) fn failure_ratios(&self, from: Duration) -> Vec<f64> {
        let windows = self.windows.after_start().iter().enumerate();
        let late = windows.filter(|&(nth, window)| window.arrived > 0 && self.windows.start_of(nth) >= from);
        late.map(|(_, window)| 1.0 - window.served as f64 / window.arrived as f64).collect()
    }

    pub(crate) fn was_down_before(&self) -> bool {
        // The requests of the last window before the fault can be hit by it.
        let before = self.windows.before_outage();
        !History::of(&before[..before.len().saturating_sub(1)], self.percent).is_up()
    }

    pub(crate) const fn width(&self) -> Duration {
        self.windows.width()
    }

    /// Returns the shortest horizon at which the system can be seen to recover.
    pub(crate) fn min_horizon(&self) -> Duration {
        shortest_horizon_of(self.end, self.width())
    }

    /// Returns the share of the requests of the last ten windows that were served.
    pub(crate) fn final_success_ratio(&self) -> f64 {
        self.windows.served_in_last(LAST_WINDOWS)
    }

    fn history(&self) -> History {
        History::of(self.windows.after_start(), self.percent)
    }
}

/// Requests by the window in which they arrived, and how many of them were served in the end. Times are in
/// microseconds.
///
/// Windows are aligned at the start of the outage. The requests after the last whole window belong to that window, so
/// that no window has too few of them to be judged.
#[derive(Clone, Debug, Default, PartialEq)]
struct Windows {
    width: u64,
    /// Start of the first window.
    origin: u64,
    horizon: u64,
    /// Number of windows before the outage.
    before: usize,
    windows: Vec<Window>,
}

/// The requests that arrived in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Window {
    arrived: u64,
    served: u64,
}

/// A window has this many expected requests: with fewer, random variation would decide.
const EXPECTED: f64 = 100.0;
const MIN_WIDTH: u64 = 1_000_000;

impl Windows {
    /// Creates empty windows for a mean number of requests per second.
    fn new(rate: f64, outage_start: u64, horizon: u64) -> Self {
        let width = Self::width_for(rate);
        let before = outage_start / width;
        let after = match (horizon - outage_start) / width {
            0 => u64::from(horizon > outage_start),
            whole => whole,
        };
        Self {
            width,
            origin: outage_start - before * width,
            horizon,
            before: before as usize,
            windows: vec![Window::default(); (before + after) as usize],
        }
    }

    fn arrived(&mut self, at: u64) {
        if let Some(window) = self.of(at) {
            window.arrived += 1;
        }
    }

    fn served(&mut self, arrived_at: u64) {
        if let Some(window) = self.of(arrived_at) {
            window.served += 1;
        }
    }

    fn of(&mut self, arrived_at: u64) -> Option<&mut Window> {
        if arrived_at >= self.horizon {
            return None;
        }
        let since = arrived_at.checked_sub(self.origin)?;
        let last = self.windows.len().checked_sub(1)?;
        self.windows.get_mut(last.min((since / self.width) as usize))
    }

    /// Returns the width of a window, in microseconds.
    fn width_for(rate: f64) -> u64 {
        MIN_WIDTH.max((1e6 * EXPECTED / rate).ceil() as u64)
    }

    /// Returns the width of a window.
    const fn width(&self) -> Duration {
        Duration::from_micros(self.width)
    }

    /// Returns the windows before the start of the outage.
    fn before_outage(&self) -> &[Window] {
        &self.windows[..self.before]
    }

    /// Returns the windows from the start of the outage.
    fn after_start(&self) -> &[Window] {
        &self.windows[self.before..]
    }

    /// Returns the start of a window, counted from the start of the outage.
    const fn start_of(&self, window: usize) -> Duration {
        Duration::from_micros(self.origin + (self.before + window) as u64 * self.width)
    }

    /// Returns the share of the requests of the last `count` windows from the start of the outage that were served; 1
    /// if there are none.
    fn served_in_last(&self, count: usize) -> f64 {
        let windows = self.after_start();
        let last = &windows[windows.len().saturating_sub(count)..];
        let sum = |of: fn(&Window) -> u64| last.iter().map(of).sum::<u64>() as f64;
        let arrived = sum(|window| window.arrived);
        if arrived > 0.0 { sum(|window| window.served) / arrived } else { 1.0 }
    }
}

impl Window {
    /// Returns whether at least `percent` of the requests were served; true if there were none.
    const fn is_good(&self, percent: u64) -> bool {
        100 * self.served >= percent * self.arrived
    }

    #[cfg(test)]
    const fn of_share(served: u64) -> Self {
        Self { arrived: 100, served }
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

    const SECOND: u64 = 1_000_000;

    #[test]
    fn windows_have_a_hundred_expected_requests_and_at_least_a_second() {
        for (rate, want) in [(0.5, 200_000), (1.0, 100_000), (50.0, 2_000), (100.0, 1_000), (800.0, 1_000)] {
            assert_eq!(Windows::new(rate, 0, SECOND).width(), Duration::from_millis(want), "{rate}/s");
        }
    }

    #[test]
    fn windows_are_aligned_at_the_start_of_the_outage() {
        let windows = Windows::new(50.0, 5 * SECOND, 15 * SECOND);
        assert_eq!((windows.before_outage().len(), windows.after_start().len()), (2, 5));
        assert_eq!([0, 1].map(|nth| windows.start_of(nth)), [5, 7].map(Duration::from_secs));
    }

    #[test]
    fn a_request_counts_in_the_window_of_its_arrival() {
        let mut windows = Windows::new(100.0, SECOND, 3 * SECOND + SECOND / 2);
        for at in [0, SECOND - 1, SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND] {
            windows.arrived(at);
        }
        windows.served(2 * SECOND);
        let arrived: Vec<_> = windows.windows.iter().map(|window| (window.arrived, window.served)).collect();
        // The last half second belongs to the window before it; nothing after the horizon counts.
        assert_eq!(arrived, [(2, 0), (1, 0), (2, 1)]);
        assert!((windows.served_in_last(1) - 0.5).abs() < 1e-9, "{}", windows.served_in_last(1));
    }

    #[test]
    fn a_horizon_shorter_than_a_window_is_one_window() {
        let mut windows = Windows::new(1.0, SECOND, 2 * SECOND);
        windows.arrived(SECOND);
        assert_eq!(windows.after_start(), [Window { arrived: 1, served: 0 }]);
        assert_eq!(Windows::new(1.0, SECOND, SECOND).after_start(), []);
    }

    #[test]
    fn a_window_is_good_from_its_share() {
        for (percent, served, is_good) in
            [(90, 89, false), (90, 90, true), (90, 100, true), (95, 94, false), (95, 95, true)]
        {
            assert_eq!(Window::of_share(served).is_good(percent), is_good, "{served} % of {percent} %");
        }
        assert!(Window::default().is_good(90), "an empty window is good");
    }
}
