//! Parts that several charts share.

use stagger_sim::storm::{RunFigures, StormReport};
use stagger_terminal::plot::{Hue, Series, Shape};

use crate::storm::subject::{Subject, subjects};

/// Maximum number of intervals of a line, each of up to two points: what a screen can show.
pub(super) const RESOLUTION: usize = 500;

/// The same for a figure that is one of several.
pub(super) const RESOLUTION_OF_MANY: usize = 300;

/// Maximum number of lines in one chart: the palette has no more colors.
const MAX_LINES: usize = 6;

/// Share of the attempts that charts show. The last ones arrive individually and late.
pub(super) const SHOWN_SHARE: f64 = 0.999;

/// Number of rows of the table beside a chart.
pub(super) const ROWS: usize = 24;

/// Returns the series of a policy, in the color that it has in every chart.
pub(super) fn line(name: &str, nth: usize, shape: Shape) -> Series {
    Series::strong(name, Hue::nth(nth), shape)
}

/// Returns the series of a simulation in a chart that has the measured ones of several policies: thin, in the color of
/// its policy. All share an entry in the legend.
pub(super) fn simulated_line(nth: usize, shape: Shape) -> Series {
    Series::light("simulated", Hue::nth(nth), shape)
}

/// Appends a note if the chart does not show all policies.
pub(super) fn with_limit_note(text: &str, storm: &StormReport) -> String {
    let rest = subjects(storm).len() > MAX_LINES;
    [text, if rest { "The first six policies are shown." } else { "" }].join(" ").trim().to_owned()
}

/// Returns the first run of each strategy: charts of several runs would overlap.
pub(super) fn first_runs(storm: &StormReport) -> impl Iterator<Item = (usize, &str, &RunFigures)> {
    let strategies = storm.strategies.iter().enumerate();
    strategies.filter_map(|(at, strategy)| Some((at, &*strategy.name, &strategy.runs.first()?.figures)))
}

/// Returns the number of rows that the policies of a chart with [`MAX_LINES`] have.
pub(super) fn limited_rows(storm: &StormReport) -> usize {
    let last = subjects(storm).into_iter().take(MAX_LINES).next_back();
    last.map_or(0, |policy| policy.simulated.unwrap_or(policy.row) + 1)
}

/// What a chart shows of a policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a, T> {
    pub(super) subject: Subject<'a>,
    /// Place of the policy, which determines its color.
    pub(super) nth: usize,
    pub(super) data: &'a T,
    /// The data of the simulation of a measured policy.
    pub(super) simulated: Option<&'a T>,
}

/// Returns the data of each policy, which `data` has by rows.
pub(super) fn by_policy<'a, T>(storm: &'a StormReport, data: &'a [(usize, &str, T)]) -> Vec<Shown<'a, T>> {
    let of = |row: usize| data.iter().find(|(at, ..)| *at == row).map(|(_, _, data)| data);
    let shown = |(nth, subject): (usize, Subject<'a>)| {
        Some(Shown { subject, nth, data: of(subject.row)?, simulated: subject.simulated.and_then(of) })
    };
    subjects(storm).into_iter().enumerate().filter_map(shown).collect()
}

/// Returns the series of a figure that shows one policy: nameless and in its color, since the figure has the name; of a
/// measured policy also the simulation, both with the colors that they have in all figures.
pub(super) fn of_one_policy<T>(shown: &Shown<'_, T>, shape: impl Fn(&T) -> Shape) -> Vec<Series> {
    match shown.simulated {
        // Nothing else is in the figure that dashes would distinguish it from.
        None => vec![Series { name: None, ..Series::strong("", Hue::nth(shown.nth).solid(), shape(shown.data)) }],
        Some(simulated) => {
            vec![line("simulated", 1, shape(simulated)), line("measured", 0, shape(shown.data))]
        }
    }
}
