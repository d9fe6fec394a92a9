use core::time::Duration;

use super::Verdict;
use super::verdict::{GOOD_WINDOWS, History};
use super::windows::Windows;

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
        let up = history.last_rise().map_or(Duration::ZERO, |rise| self.windows.start_of(rise));
        history.is_up().then(|| up.saturating_sub(self.end))
    }

    pub(crate) fn fell_at(&self) -> Option<Duration> {
        self.history().first_fall().map(|fall| self.windows.start_of(fall))
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
        self.end.saturating_add(self.width().saturating_mul(GOOD_WINDOWS as u32 + 1))
    }

    /// Returns the share of the requests of the last ten windows that were served.
    pub(crate) fn final_success_ratio(&self) -> f64 {
        self.windows.served_in_last(LAST_WINDOWS)
    }

    fn history(&self) -> History {
        History::of(self.windows.after_start(), self.percent)
    }
}
