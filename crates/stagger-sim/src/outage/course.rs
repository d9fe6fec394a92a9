//! The course of a run after its faults: whether what keeps a system down shrinks, or what lets it serve grows full.

use core::time::Duration;

use super::verdict::{JudgedWindows, Verdict};
use crate::engine::{TimeSeries, micros};

/// What a run shows second by second besides its windows, and what is known of the system that it is compared with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Course {
    /// How long a system has to be down, after all faults, before it can be said to stay down.
    patience: Duration,
    /// Attempts that each service can serve in a second.
    capacities: Vec<f64>,
    /// The number of hot keys that are in no cache, at every whole second.
    pub(crate) cold_keys: Vec<u64>,
    /// Retries that guards granted and those that they refused, up to every whole second.
    pub(crate) granted: Vec<u64>,
    pub(crate) refused: Vec<u64>,
}

/// The time in which a trend is compared with chance: batches of the second half of the time since the fall.
const BATCHES: usize = 8;

/// The 99 % quantile of Student's distribution, of both sides, with the six degrees of freedom of eight batches.
const STUDENT: f64 = 3.707;

/// A backlog counts if it is this share of the time since the fall, in work: less is worked off within a run, unless
/// the service is loaded to more than 1 − 1/300 of its capacity.
const LEAST_BACKLOG: f64 = 1.0 / 300.0;

/// A backlog or a cache that may be worked off within so many times the time since the fall is not said to stay.
const BACKLOG_HORIZONS: f64 = 4.0;
const CACHE_HORIZONS: f64 = 20.0;

/// The least time, and the least number of windows, before a system can be said to stay down.
const LEAST_TIME: Duration = Duration::from_secs(60);
const LEAST_WINDOWS: u32 = 2 * BATCHES as u32;

/// Times that are known from the system are considered up to this one, and so are the savings of guards: some guards
/// never refuse a retry.
const LONGEST_TIME: Duration = Duration::from_secs(600);

impl Course {
    /// Starts the course of a system whose calls take at most `longest_call`, and whose full queues are that much
    /// `work`. `window` is the width of those by which it is judged.
    pub(crate) fn new(window: Duration, longest_call: Option<Duration>, work: Duration, capacities: Vec<f64>) -> Self {
        // A wave of attempts comes back after the longest call, and passes the queues.
        let known = 2 * (longest_call.unwrap_or_default().min(LONGEST_TIME) + work.min(LEAST_TIME));
        let patience = LEAST_TIME.max(window.saturating_mul(LEAST_WINDOWS)).max(known);
        Self { patience, capacities, ..Self::default() }
    }
}

/// A run up to its horizon, to be judged.
pub(crate) struct Run<'a> {
    pub(crate) course: &'a Course,
    pub(crate) windows: &'a JudgedWindows,
    pub(crate) fault_end: Duration,
    pub(crate) horizon: Duration,
    pub(crate) requests: &'a TimeSeries,
    /// Attempts, on each edge of a system.
    pub(crate) attempts: Vec<&'a TimeSeries>,
    /// The number of attempts at each service, at every whole second.
    pub(crate) occupancies: Vec<&'a [u32]>,
}

impl Run<'_> {
    /// Returns the state at the horizon if a longer run would not show another one.
    pub(crate) fn verdict(&self) -> Verdict {
        let is_decided = self.horizon >= self.windows.min_horizon()
            && match self.windows.down_since() {
                _ if self.windows.comes_and_goes() => true,
                Some(since) => self.stays_down(since),
                None => !self.backlog_grows(),
            };
        if is_decided { self.windows.verdict() } else { Verdict::NotDecided }
    }

    /// Returns whether the system, which is down since `since`, stays down: it has been down for long enough, and
    /// nothing shows that it recovers.
    fn stays_down(&self, since: Duration) -> bool {
        let since = since.max(self.fault_end);
        let down = self.horizon.saturating_sub(since);
        if down < self.course.patience {
            return false;
        }
        let half = since + down / 2;
        let failures = self.windows.failure_ratios(half);
        !failures_shrink(&failures)
            && !self.backlogs(half, down).any(|trend| trend.shrinks() || trend.may_end_within(BACKLOG_HORIZONS))
            && !self.attempts.iter().any(|attempts| attempts_shrink(attempts, half, self.horizon))
            && !self.cache_fills(half)
            && (down >= LONGEST_TIME || !self.guards_last(half))
    }

    /// Returns whether a backlog of the system, which is up, may grow.
    fn backlog_grows(&self) -> bool {
        let time = self.horizon.saturating_sub(self.fault_end);
        self.backlogs(self.fault_end + time / 2, time).any(|trend| trend.may_grow())
    }

    /// Returns the trend of each backlog that is not short, from `half` to the horizon: the second half of `time`.
    fn backlogs(&self, half: Duration, time: Duration) -> impl Iterator<Item = Walk> + '_ {
        self.occupancies.iter().zip(&self.course.capacities).filter_map(move |(occupancy, capacity)| {
            let counts: Vec<_> = samples(occupancy, half, self.horizon).iter().map(|&count| f64::from(count)).collect();
            let walk = Walk::of(&batches(&counts)?);
            (walk.mean > LEAST_BACKLOG * time.as_secs_f64() * capacity).then_some(walk)
        })
    }

    fn cache_fills(&self, half: Duration) -> bool {
        let cold = samples(&self.course.cold_keys, half, self.horizon);
        let (Some(&first), Some(&last)) = (cold.first(), cold.last()) else { return false };
        let filled = first.saturating_sub(last) as f64;
        // The second half of the time filled so many.
        filled > 0.0 && last as f64 <= filled * 2.0 * CACHE_HORIZONS
    }

    /// Returns whether guards have let retries through that they will not let through for ever: many, and none refused.
    fn guards_last(&self, half: Duration) -> bool {
        let made = |counts: &[u64]| {
            let counts = samples(counts, half, self.horizon);
            counts.last().copied().unwrap_or(0) - counts.first().copied().unwrap_or(0)
        };
        let requests = self.requests.sum_within(half, self.horizon) as f64;
        made(&self.course.refused) == 0 && made(&self.course.granted) as f64 > LEAST_RETRIES * requests
    }
}

/// Guards that grant more retries than these per request, and refuse none, live on what they have saved.
const LEAST_RETRIES: f64 = 0.05;

/// Notes a value at a time in microseconds: the last one of each whole second is kept.
#[inline]
pub(super) fn note<T: Copy>(samples: &mut Vec<T>, now: u64, value: T) {
    let second = (now / 1_000_000) as usize;
    match samples.get_mut(second) {
        Some(last) => *last = value,
        None => samples.resize(second + 1, value),
    }
}

/// Returns the samples of whole seconds between two times.
fn samples<T>(counts: &[T], from: Duration, until: Duration) -> &[T] {
    let end = (until.as_secs() as usize + 1).min(counts.len());
    counts.get(from.as_secs() as usize..end).unwrap_or_default()
}

/// Returns the means of eight batches of equal length; `None` if there are fewer values.
fn batches(values: &[f64]) -> Option<[f64; BATCHES]> {
    let count = values.len();
    if count < BATCHES {
        return None;
    }
    let mean = |nth: usize| {
        let batch = &values[nth * count / BATCHES..(nth + 1) * count / BATCHES];
        batch.iter().sum::<f64>() / batch.len() as f64
    };
    Some(core::array::from_fn(mean))
}

/// A trend of values that vary around a line: its slope for each batch, and how far that may be from the true one.
struct Line {
    slope: f64,
    error: f64,
    mean: f64,
}

impl Line {
    fn through(means: &[f64; BATCHES]) -> Self {
        let mean = means.iter().sum::<f64>() / BATCHES as f64;
        let middle = (BATCHES - 1) as f64 / 2.0;
        let at = |nth: usize| nth as f64 - middle;
        let squares: f64 = (0..BATCHES).map(|nth| at(nth) * at(nth)).sum();
        let slope = (0..BATCHES).map(|nth| at(nth) * means[nth]).sum::<f64>() / squares;
        let rest = (0..BATCHES).map(|nth| (means[nth] - mean - slope * at(nth)).powi(2)).sum::<f64>();
        Self { slope, error: STUDENT * (rest / (BATCHES - 2) as f64 / squares).sqrt(), mean }
    }

    fn falls(&self) -> bool {
        self.slope + self.error < -1e-9 * self.mean
    }
}

/// A trend of values whose changes add up, as those of a queue do: the mean change from batch to batch.
struct Walk {
    change: f64,
    error: f64,
    mean: f64,
    last: f64,
}

impl Walk {
    fn of(means: &[f64; BATCHES]) -> Self {
        let steps = (BATCHES - 1) as f64;
        let changes = means.windows(2).map(|pair| pair[1] - pair[0]);
        let change = changes.clone().sum::<f64>() / steps;
        let variance = changes.map(|one| (one - change).powi(2)).sum::<f64>() / (steps - 1.0);
        let mean = means.iter().sum::<f64>() / BATCHES as f64;
        Self { change, error: STUDENT * (variance / steps).sqrt(), mean, last: means[BATCHES - 1] }
    }

    fn shrinks(&self) -> bool {
        self.change + self.error < -1e-9 * self.mean
    }

    /// Returns whether it cannot be excluded that it doubles within four times the time.
    fn may_grow(&self) -> bool {
        (self.change + self.error) * BACKLOG_HORIZONS * 2.0 * BATCHES as f64 > self.mean
    }

    /// Returns whether it cannot be excluded that all is gone within so many times the time since the fall.
    fn may_end_within(&self, times: f64) -> bool {
        let fastest = self.error - self.change;
        // The batches are those of one half.
        fastest > 0.0 && self.last <= fastest * times * 2.0 * BATCHES as f64
    }
}

/// Returns whether the shares of failed requests shrink.
fn failures_shrink(ratios: &[f64]) -> bool {
    batches(ratios).is_none_or(|means| Line::through(&means).falls())
}

/// Attempts of which fewer than this share are gone after the half of the time are not said to become fewer.
const LEAST_CHANGE: f64 = 0.05;

fn attempts_shrink(attempts: &TimeSeries, half: Duration, horizon: Duration) -> bool {
    let [first, last] = [half, horizon].map(|at| (micros(at) / micros(TimeSeries::BIN_WIDTH)) as usize);
    let counts: Vec<_> = (first..last).map(|bin| f64::from(attempts.counts().get(bin).copied().unwrap_or(0))).collect();
    let Some(means) = batches(&counts) else { return false };
    let line = Line::through(&means);
    line.falls() && -line.slope * (BATCHES - 1) as f64 > LEAST_CHANGE * line.mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_falls_if_its_slope_is_larger_than_chance() {
        let falling = [8.0, 7.1, 6.0, 4.9, 4.0, 3.1, 2.0, 1.0];
        let level = [4.0, 5.0, 4.5, 4.0, 5.0, 4.4, 4.6, 4.1];
        assert!(Line::through(&falling).falls() && !Line::through(&level).falls());
        assert!((Line::through(&falling).slope + 1.0).abs() < 0.02);
    }

    #[test]
    fn a_full_queue_does_not_shrink_and_one_that_may_be_gone_soon_is_not_said_to_stay() {
        let full = Walk::of(&[1_500.0; BATCHES]);
        assert!(!full.shrinks() && !full.may_grow() && !full.may_end_within(4.0));
        let drained = Walk::of(&core::array::from_fn(|nth| 1_500.0 - 10.0 * nth as f64));
        assert!(drained.shrinks() && !drained.may_grow());
        // Nothing is known of a walk whose steps are much larger than their mean.
        let wild = Walk::of(&[900.0, 1_500.0, 700.0, 1_300.0, 800.0, 1_600.0, 600.0, 1_400.0]);
        assert!(!wild.shrinks() && wild.may_grow() && wild.may_end_within(4.0));
    }

    #[test]
    fn failures_that_do_not_shrink_stay() {
        assert!(!failures_shrink(&[1.0; 16]));
        let level: Vec<_> = (0..64).map(|nth| if nth % 2 == 0 { 0.69 } else { 0.71 }).collect();
        assert!(!failures_shrink(&level));
        let shrinking: Vec<_> = (0..64).map(|nth| 0.9 - 0.001 * f64::from(nth)).collect();
        assert!(failures_shrink(&shrinking));
        assert!(failures_shrink(&[1.0; 7]), "of too few windows, nothing is known");
    }
}
