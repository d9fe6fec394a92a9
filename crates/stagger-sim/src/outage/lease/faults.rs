use core::time::Duration;

use stagger_core::Ratio;

use crate::engine::time::micros;

/// What happens to the store of a fleet's budget, and to the network between it and the processes. Default: nothing.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::Ratio;
/// use stagger_sim::outage::StoreFaults;
///
/// let at = Duration::from_secs;
/// // Away from 25 s to 40 s, and empty when it is back; a third of the processes cannot reach it from 50 s to 60 s.
/// let faults = StoreFaults::none().lost(at(25), at(40)).cut(Ratio::percent(33), at(50), at(60));
/// # let _ = faults;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct StoreFaults {
    /// In microseconds, like the following times.
    pub(crate) down: Option<[u64; 2]>,
    pub(crate) is_lost: bool,
    pub(crate) cut: Option<[u64; 2]>,
    pub(crate) cut_ratio: Ratio,
}

impl StoreFaults {
    /// Creates faults that do nothing.
    pub const fn none() -> Self {
        Self { down: None, is_lost: false, cut: None, cut_ratio: Ratio::ZERO }
    }

    /// Lets no process reach the store between two times. It returns with its data.
    pub const fn down(self, from: Duration, until: Duration) -> Self {
        Self { down: Some([micros(from), micros(until)]), is_lost: false, ..self }
    }

    /// Lets no process reach the store between two times. It returns without its data.
    pub const fn lost(self, from: Duration, until: Duration) -> Self {
        Self { down: Some([micros(from), micros(until)]), is_lost: true, ..self }
    }

    /// Cuts this share of the processes off the store between two times, while it serves the others.
    pub const fn cut(self, share: Ratio, from: Duration, until: Duration) -> Self {
        Self { cut: Some([micros(from), micros(until)]), cut_ratio: share, ..self }
    }

    /// Returns whether each fault ends after it begins, and before the horizon.
    pub(crate) fn are_within(&self, horizon: u64) -> bool {
        [self.down, self.cut].into_iter().flatten().all(|[from, until]| from < until && until <= horizon)
            && self.cut_ratio <= Ratio::ONE
    }

    /// Returns the same faults so many microseconds later.
    pub(super) fn later(self, by: u64) -> Self {
        let later = |times: Option<[u64; 2]>| times.map(|times| times.map(|at| at + by));
        Self { down: later(self.down), cut: later(self.cut), ..self }
    }

    /// Returns when the last fault ends.
    pub(super) fn last_end(&self) -> Option<u64> {
        [self.down, self.cut].into_iter().flatten().map(|[_, until]| until).max()
    }

    /// Returns how many of so many processes are cut off: the first ones.
    pub(super) const fn cut_of(&self, processes: usize) -> usize {
        if self.cut.is_none() {
            0
        } else {
            (processes as u64 * self.cut_ratio.as_millionths() as u64 / 1_000_000) as usize
        }
    }

    pub(super) fn is_down(&self, at: u64) -> bool {
        is_within(self.down, at)
    }

    pub(super) fn is_cut(&self, at: u64) -> bool {
        is_within(self.cut, at)
    }

    /// Returns whether the store has come back without its data by now.
    pub(super) fn has_lost_data(&self, at: u64) -> bool {
        self.is_lost && self.down.is_some_and(|[_, until]| at >= until)
    }
}

fn is_within(times: Option<[u64; 2]>, at: u64) -> bool {
    times.is_some_and(|[from, until]| (from..until).contains(&at))
}
