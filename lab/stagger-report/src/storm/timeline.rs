//! Time series of a run, and fewer points of them for a picture.

use stagger_sim::storm::{RunFigures, StormReport};
use stagger_terminal::plot::Point;

/// Number of clients whose attempts are all recorded, for a chart.
pub const SAMPLED_CLIENTS: u32 = 60;

/// Time series of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Timeline {
    pub(crate) bin_s: f64,
    /// Attempts per bin, by arrival or by start.
    pub(crate) attempts: Vec<f64>,
    /// Connected clients or successful requests per bin; empty if unknown.
    pub(crate) successes: Vec<f64>,
}

impl Timeline {
    /// Returns the time series of a run; `None` if the scenario has none.
    pub(crate) fn from_figures(figures: &RunFigures) -> Option<Self> {
        let floats = |counts: &[u32]| counts.iter().map(|&count| f64::from(count)).collect();
        Some(match figures {
            RunFigures::Reconnect(figures) => {
                Self { bin_s: figures.bin_s, attempts: floats(&figures.arrivals), successes: floats(&figures.connects) }
            }
            RunFigures::Outage(figures) => Self {
                bin_s: figures.bin_s,
                attempts: floats(&figures.attempts),
                successes: floats(&figures.successes),
            },
            RunFigures::Fluid(figures) => {
                Self { bin_s: figures.bin_s, attempts: figures.arrivals.clone(), successes: Vec::new() }
            }
            _ => return None,
        })
    }

    /// Returns the time by which this share of all attempts was made.
    pub(crate) fn time_of_share(&self, share: f64) -> f64 {
        let target = share * self.attempts.iter().sum::<f64>();
        let mut sum = 0.0;
        let bins = self.attempts.iter().take_while(|count| {
            sum += **count;
            sum < target
        });
        (bins.count() + 1) as f64 * self.bin_s
    }
}

/// Returns the time by which every strategy has made this share of its attempts; 0 if there are none.
pub(super) fn end_time(storm: &StormReport, share: f64) -> f64 {
    let runs = storm.strategies.iter().filter_map(|strategy| strategy.runs.first());
    runs.filter_map(|run| Timeline::from_figures(&run.figures))
        .map(|timeline| timeline.time_of_share(share))
        .fold(0.0, f64::max)
}

/// Returns the bins of a series up to a time as points, at the start of each bin. If there are too many bins, returns
/// the minimum and maximum of at most `max_intervals` intervals, so that no peak is lost.
pub fn downsample(bins: &[f64], bin_s: f64, until: f64, max_intervals: usize) -> Vec<Point> {
    let shown = &bins[..bins.len().min((until / bin_s).ceil() as usize)];
    let point = |at: usize| Point { x: at as f64 * bin_s, y: shown[at] };
    let width = shown.len().div_ceil(max_intervals.max(1)).max(1);
    if width < 3 {
        return (0..shown.len()).map(point).collect();
    }
    let mut out = Vec::new();
    for from in (0..shown.len()).step_by(width) {
        let interval = from..(from + width).min(shown.len());
        let by_value = |a: &usize, b: &usize| shown[*a].total_cmp(&shown[*b]);
        let (Some(min), Some(max)) = (interval.clone().min_by(by_value), interval.max_by(by_value)) else {
            continue;
        };
        let both = [min.min(max), min.max(max)];
        out.extend(both.iter().take(if min == max { 1 } else { 2 }).map(|&at| point(at)));
    }
    out
}

/// Returns the sums of a series over `count` equal intervals.
pub(crate) fn resample(bins: &[f64], bin_s: f64, until: f64, count: usize) -> Vec<f64> {
    let mut sums = vec![0.0; count];
    for (at, value) in bins.iter().enumerate() {
        let interval = (at as f64 + 0.5) * bin_s / until * count as f64;
        if let Some(sum) = sums.get_mut(interval as usize) {
            *sum += value;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downsampling_keeps_every_peak() {
        let mut bins = vec![1.0; 86_400];
        bins[12_345] = 99.0;
        bins[54_321] = 0.0;
        let points = downsample(&bins, 0.1, 1e9, 600);
        assert!(points.len() <= 1_200, "{}", points.len());
        let has = |x: f64, y: f64| points.iter().any(|point| (point.x - x).abs() < 1e-6 && (point.y - y).abs() < 1e-9);
        assert!(has(1_234.5, 99.0) && has(5_432.1, 0.0));
        assert!(points.is_sorted_by(|a, b| a.x < b.x));
    }

    #[test]
    fn a_short_series_is_not_downsampled() {
        let ys: Vec<f64> = downsample(&[3.0, 1.0, 2.0, 9.0], 0.1, 0.25, 600).iter().map(|point| point.y).collect();
        assert_eq!(ys, [3.0, 1.0, 2.0]);
    }

    #[test]
    fn resampling_keeps_the_sum() {
        assert_eq!(resample(&[1.0, 2.0, 3.0, 4.0], 0.5, 2.0, 2), [3.0, 7.0]);
        let timeline = Timeline { bin_s: 0.5, attempts: vec![5.0, 4.0, 0.0, 1.0], successes: Vec::new() };
        assert_eq!([0.9, 1.0].map(|share| format!("{:.1}", timeline.time_of_share(share))), ["1.0", "2.0"]);
    }
}
