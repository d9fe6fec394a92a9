//! What several pictures share.

use stagger_sim::storm::{Figures, Storm};

use crate::plot::{Hue, Series, Shape, Weight};

/// Points of a series at most, twice: what a screen can show.
pub(super) const RESOLUTION: usize = 500;

/// Lines of one picture: of more, two would have one color.
pub(super) const TOLD_APART: usize = 6;

/// Attempts of which the last are left out: they come one by one, and late.
pub(super) const NEARLY_EVERY: f64 = 0.999;

/// Rows of a table beside a picture.
pub(super) const ROWS: usize = 24;

/// A line of a strategy, in the color that it has in every picture.
pub(super) fn line(name: &str, nth: usize, shape: Shape) -> Series {
    Series { name: Some(name.to_owned()), shape, hue: Hue::nth(nth), weight: Weight::Strong }
}

/// What is said of a picture that has no room for all strategies.
pub(super) fn about(text: &str, storm: &Storm) -> String {
    let rest = storm.strategies.len() > TOLD_APART;
    [text, if rest { "The first six strategies are shown." } else { "" }].join(" ").trim().to_owned()
}

/// The first run of each strategy: pictures of several would lie on one another.
pub(super) fn firsts(storm: &Storm) -> impl Iterator<Item = (usize, &str, &Figures)> {
    let strategies = storm.strategies.iter().enumerate();
    strategies.filter_map(|(at, strategy)| Some((at, &*strategy.name, &strategy.runs.first()?.figures)))
}
