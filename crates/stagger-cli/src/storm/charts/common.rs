//! Parts that several charts share.

use stagger_sim::storm::{RunFigures, StormReport};

use crate::plot::{Hue, Series, Shape};

/// Maximum number of intervals of a line, each of up to two points: what a screen can show.
pub(super) const RESOLUTION: usize = 500;

/// Maximum number of lines in one chart: the palette has no more colors.
pub(super) const MAX_LINES: usize = 6;

/// Share of the attempts that charts show. The last ones arrive individually and late.
pub(super) const SHOWN_SHARE: f64 = 0.999;

/// Number of rows of the table beside a chart.
pub(super) const ROWS: usize = 24;

/// Returns the series of a strategy, in the color that it has in every chart.
pub(super) fn line(name: &str, nth: usize, shape: Shape) -> Series {
    Series::strong(name, Hue::nth(nth), shape)
}

/// Appends a note if the chart does not show all strategies.
pub(super) fn with_limit_note(text: &str, storm: &StormReport) -> String {
    let rest = storm.strategies.len() > MAX_LINES;
    [text, if rest { "The first six strategies are shown." } else { "" }].join(" ").trim().to_owned()
}

/// Returns the first run of each strategy: charts of several runs would overlap.
pub(super) fn first_runs(storm: &StormReport) -> impl Iterator<Item = (usize, &str, &RunFigures)> {
    let strategies = storm.strategies.iter().enumerate();
    strategies.filter_map(|(at, strategy)| Some((at, &*strategy.name, &strategy.runs.first()?.figures)))
}
