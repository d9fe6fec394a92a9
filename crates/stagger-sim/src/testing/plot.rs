use core::fmt;

use stagger_core::text::Compact;

use crate::TimeSeries;

/// What came to a server over time, drawn with characters: as high as the most of each stretch, so that no peak is lost.
pub(super) struct Plot<'a> {
    /// What came: `arrivals`.
    pub(super) what: &'static str,
    pub(super) series: &'a TimeSeries,
    /// What the server takes in a second.
    pub(super) capacity: f64,
}

const COLUMNS: usize = 60;
const ROWS: usize = 6;

/// A cell, filled from below.
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
        writeln!(f, "  {what} in {}, the most of each {of}; ─ is what the server takes: {capacity}", time(1))?;
        // In the topmost row if nothing ever came to more.
        let line = ((capacity / highest * ROWS as f64).ceil() as usize).clamp(1, ROWS);
        for row in (1..=ROWS).rev() {
            let label = match row {
                ROWS => format!("{highest:.0}"),
                _ => String::new(),
            };
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
    fn columns_are_as_high_as_what_came_and_what_came_is_never_nothing() {
        let times: Vec<u64> = [0; 60].into_iter().chain([100; 30]).chain([250]).collect();
        let want = [
            "  arrivals in 100ms, the most of each 100ms; ─ is what the server takes: 10",
            "         60 │█",
            "            │█",
            "            │█",
            "            │██",
            "            │██",
            "            │██▁",
            "            └0s300ms",
        ];
        let mut lines = lines(&times, 100.0);
        // The line is where nothing else is: in the row that ends at what the server takes.
        assert_eq!(lines[6], "            │██▁", "{lines:#?}");
        lines[7] = lines[7].replace(' ', "");
        assert_eq!(lines[..7], want[..7]);
    }

    #[test]
    fn a_peak_of_a_tenth_of_a_second_is_seen_in_an_hour() {
        let times: Vec<u64> = (0..3_600).map(|second| second * 1_000).chain([1_800_000; 99]).collect();
        let lines = lines(&times, 10.0);
        assert!(lines[0].contains("the most of each 1m") && lines[1].contains(" 100 │"), "{lines:#?}");
        assert_eq!(lines[1].matches('█').count(), 1, "{lines:#?}");
    }

    #[test]
    fn what_the_server_takes_is_a_line_above_what_comes() {
        let lines = lines(&[0, 100, 200, 1_000], 500.0);
        assert!(lines[1].ends_with("50 │───────────"), "{lines:#?}");
    }

    #[test]
    fn nothing_is_drawn_too() {
        assert_eq!(lines(&[], 500.0).len(), 8);
    }
}
