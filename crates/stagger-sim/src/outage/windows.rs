use core::time::Duration;

/// Requests by the window in which they arrived, and how many of them were served in the end. Times are in microseconds.
///
/// Windows are aligned at the start of the outage. The requests after the last whole window belong to that window, so
/// that no window has too few of them to be judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Windows {
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
pub(super) struct Window {
    arrived: u64,
    served: u64,
}

/// A window has this many expected requests: with fewer, random variation would decide.
const EXPECTED: f64 = 100.0;
const MIN_WIDTH: u64 = 1_000_000;

impl Windows {
    /// Creates empty windows for a mean number of requests per second.
    pub(super) fn new(rate: f64, outage_start: u64, horizon: u64) -> Self {
        let width = MIN_WIDTH.max((1e6 * EXPECTED / rate).ceil() as u64);
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

    pub(super) fn arrived(&mut self, at: u64) {
        if let Some(window) = self.of(at) {
            window.arrived += 1;
        }
    }

    pub(super) fn served(&mut self, arrived_at: u64) {
        if let Some(window) = self.of(arrived_at) {
            window.served += 1;
        }
    }

    fn of(&mut self, arrived_at: u64) -> Option<&mut Window> {
        let since = arrived_at.checked_sub(self.origin).filter(|_| arrived_at < self.horizon)?;
        let last = self.windows.len().checked_sub(1)?;
        self.windows.get_mut(last.min((since / self.width) as usize))
    }

    /// Returns the width of a window.
    pub(super) const fn width(&self) -> Duration {
        Duration::from_micros(self.width)
    }

    /// Returns the windows before the start of the outage.
    pub(super) fn before_outage(&self) -> &[Window] {
        &self.windows[..self.before]
    }

    /// Returns the windows from the start of the outage.
    pub(super) fn after_start(&self) -> &[Window] {
        &self.windows[self.before..]
    }

    /// Returns the start of a window, counted from the start of the outage.
    pub(super) const fn start_of(&self, window: usize) -> Duration {
        Duration::from_micros(self.origin + (self.before + window) as u64 * self.width)
    }

    /// Returns the share of the requests of the last `count` windows from the start of the outage that were served; 1
    /// if there are none.
    pub(super) fn served_in_last(&self, count: usize) -> f64 {
        let windows = self.after_start();
        let last = &windows[windows.len().saturating_sub(count)..];
        let sum = |of: fn(&Window) -> u64| last.iter().map(of).sum::<u64>() as f64;
        let arrived = sum(|window| window.arrived);
        if arrived > 0.0 { sum(|window| window.served) / arrived } else { 1.0 }
    }
}

impl Window {
    /// Returns whether at least `percent` of the requests were served; true if there were none.
    pub(super) const fn is_good(&self, percent: u64) -> bool {
        100 * self.served >= percent * self.arrived
    }

    #[cfg(test)]
    pub(super) const fn of_share(served: u64) -> Self {
        Self { arrived: 100, served }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
