//! The text of a failed assertion, with a plot of the load.

use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};

use crate::engine::TimeSeries;

pub(super) struct Report<'a> {
    pub(super) policy: &'a Policy,
    pub(super) seed: Seed,
    pub(super) rows: &'a [(&'static str, String)],
    /// What the figures ask for; nothing if they are in order.
    pub(super) remedy: Option<String>,
    pub(super) plot: Plot<'a>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = [("policy", self.policy.to_string()), ("seed", self.seed.get().to_string())];
        let remedy = self.remedy.as_ref().map(|remedy| ("remedy", remedy.clone()));
        let rows = || own.iter().chain(self.rows).chain(&remedy);
        let width = rows().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in rows() {
            writeln!(f, "  {name:<width$}  {value}")?;
        }
        write!(f, "\n{}", self.plot)
    }
}

/// Returns the run if the claim holds; otherwise panics at the caller's location.
#[track_caller]
pub(super) fn check_claim<R: fmt::Display>(run: &R, holds: bool, what: impl fmt::Display) -> &R {
    assert!(holds, "{what}\n\n{run}");
    run
}

/// Formats a time with two decimals; `None` is `never`.
pub(super) fn time(time: Option<Duration>) -> String {
    match time {
        Some(time) => format!("{:.2}", Compact(time)),
        None => "never".to_owned(),
    }
}

/// A text plot of the load on a server. A column shows the maximum of its bins, so that no peak is lost.
pub(super) struct Plot<'a> {
    /// The label of the series: `arrivals`.
    pub(super) what: &'static str,
    pub(super) series: &'a TimeSeries,
    pub(super) capacity: f64,
}

const COLUMNS: usize = 60;
const ROWS: usize = 6;

const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const FULL: usize = LEVELS.len() - 1;

impl fmt::Display for Plot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.series.counts();
        let stretch = counts.len().div_ceil(COLUMNS).max(1);
        let most = |bins: &[u32]| f64::from(bins.iter().copied().max().unwrap_or(0));
        let columns: Vec<f64> = counts.chunks(stretch).map(most).collect();
        let capacity = self.capacity * TimeSeries::BIN_WIDTH.as_secs_f64();
        let highest = columns.iter().copied().fold(capacity, f64::max);
        let time = |bins: usize| Compact(TimeSeries::BIN_WIDTH.saturating_mul(u32::try_from(bins).unwrap_or(u32::MAX)));

        let (what, of) = (self.what, time(stretch));
        writeln!(f, "  {what} per {}, maximum over each {of}; ─ is the capacity: {capacity}", time(1))?;
        // In the top row if the load never exceeds the capacity.
        let line = ((capacity / highest * ROWS as f64).ceil() as usize).clamp(1, ROWS);
        for row in (1..=ROWS).rev() {
            let label = if row == ROWS { format!("{highest:.0}") } else { String::new() };
            write!(f, "  {label:>9} │")?;
            let mut cells = String::new();
            for &column in &columns {
                let level = (column / highest * (ROWS * FULL) as f64).ceil() as usize;
                let cell = LEVELS[level.saturating_sub((row - 1) * FULL).min(FULL)];
                cells.push(if cell == ' ' && row == line { '─' } else { cell });
            }
            writeln!(f, "{}", cells.trim_end())?;
        }
        let end = time(counts.len()).to_string();
        writeln!(f, "  {:>9} └0s{end:>width$}", "", width = columns.len().saturating_sub(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(times: &[u64], capacity: f64) -> Vec<String> {
        let mut series = TimeSeries::default();
        times.iter().for_each(|&at| series.add(at * 1_000));
        let plot = Plot { what: "arrivals", series: &series, capacity };
        plot.to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn columns_are_proportional_and_a_nonzero_count_is_visible() {
        let times: Vec<u64> = [0; 60].into_iter().chain([100; 30]).chain([250]).collect();
        let want = [
            "  arrivals per 100ms, maximum over each 100ms; ─ is the capacity: 10",
            "         60 │█",
            "            │█",
            "            │█",
            "            │██",
            "            │██",
            // The capacity line is drawn only in empty cells.
            "            │██▁",
        ];
        assert_eq!(lines(&times, 100.0)[..7], want);
    }

    #[test]
    fn a_peak_of_100_ms_is_visible_in_an_hour() {
        let times: Vec<u64> = (0..3_600).map(|second| second * 1_000).chain([1_800_000; 99]).collect();
        let lines = lines(&times, 10.0);
        assert!(lines[0].contains("maximum over each 1m") && lines[1].contains(" 100 │"), "{lines:#?}");
        assert_eq!(lines[1].matches('█').count(), 1, "{lines:#?}");
    }

    #[test]
    fn the_capacity_is_a_line_above_the_load() {
        let lines = lines(&[0, 100, 200, 1_000], 500.0);
        assert!(lines[1].ends_with("50 │───────────"), "{lines:#?}");
    }

    #[test]
    fn an_empty_series_is_plotted() {
        assert_eq!(lines(&[], 500.0).len(), 8);
    }
}
