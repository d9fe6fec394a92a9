use serde::Serialize;
use stagger_sim::Progress;
use stagger_sim::system::{Found, Frontier, Search, SystemFile, Unit};

use super::range::{Range, changed};
use crate::output::error::CliError;

/// Seeds at each value of a search, unless the user says how many, and at those that are tried first.
const SEEDS: u64 = 24;
const FIRST_SEEDS: u64 = 4;

/// Seeds in each cell of a map, unless the user says how many.
const FRONTIER_SEEDS: u64 = 3;

/// Values of each number of a map.
const FRONTIER_VALUES: usize = 20;

/// A search for the values of a number at which the system begins to stay down, or to recover.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct SearchEntry {
    /// The name or the path of the number.
    pub(super) number: String,
    /// The smallest value that was tried. Lengths of time are in seconds, rates per second.
    low: f64,
    /// The largest value that was tried.
    high: f64,
    /// The borders, in increasing order.
    borders: Vec<BorderEntry>,
    /// All values that were tried, in increasing order.
    tried: Vec<TriedEntry>,
    #[serde(skip)]
    unit: Option<UnitText>,
}

#[derive(Clone, Copy, Debug)]
struct UnitText(Unit);

/// A border.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BorderEntry {
    /// The value at which half of the seeds stay down.
    estimate: f64,
    /// Whether the system stays down above it.
    is_worse_above: bool,
    /// The value next to it from which at most a tenth of the seeds stays down; null if it is not among those tried.
    at_most_a_tenth: Option<f64>,
    /// The value next to it from which at least nine tenths of the seeds stay down; null if it is not among those tried.
    at_least_nine_tenths: Option<f64>,
}

/// A value that was tried.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TriedEntry {
    /// The value.
    value: f64,
    /// Seeds that were down at the horizon.
    down: u64,
    /// Number of seeds.
    seeds: u64,
}

/// A map of what the system survives.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct FrontierEntry {
    /// The number whose values are the columns.
    pub(super) across: String,
    /// The number whose values are the rows.
    pub(super) up: String,
    /// The values of the columns. Lengths of time are in seconds, rates per second.
    pub(super) across_values: Vec<f64>,
    /// The values of the rows.
    pub(super) up_values: Vec<f64>,
    /// The share of the seeds that stay down: rows of cells.
    pub(super) down: Vec<Vec<f64>>,
    /// Number of seeds of each cell.
    pub(super) seeds: u64,
    /// The values as text.
    #[serde(skip)]
    pub(super) labels: [Vec<String>; 2],
}

/// Searches; `None` after an interrupt.
pub(super) fn search(
    file: &SystemFile,
    text: &str,
    (first, seeds): (u64, Option<u32>),
    progress: &Progress,
) -> Result<Option<SearchEntry>, CliError> {
    let range = Range::parse("--find", text, file)?;
    let seeds = seeds.map_or(SEEDS, u64::from);
    let search = Search::between(range.low, range.high).seeds(seeds).first_seeds(FIRST_SEEDS).with_tails();
    let search = if range.unit.is_whole() { search.whole_numbers() } else { search };
    let found = search.run_from(first, |value| changed(file, &range.changes(value)), progress);
    let found = found.map_err(|error| CliError::usage(format_args!("--find: {error}")))?;
    Ok(found.map(|found| entry(&range, &found)))
}

fn entry(range: &Range, found: &Found) -> SearchEntry {
    let borders = found.borders.iter().map(|border| BorderEntry {
        estimate: border.estimate,
        is_worse_above: border.is_worse_above,
        at_most_a_tenth: border.at_most_a_tenth,
        at_least_nine_tenths: border.at_least_nine_tenths,
    });
    let tried = found.tried.iter().map(|one| TriedEntry { value: one.value, down: one.down, seeds: one.seeds });
    SearchEntry {
        number: range.name.clone(),
        low: range.low,
        high: range.high,
        borders: borders.collect(),
        tried: tried.collect(),
        unit: Some(UnitText(range.unit)),
    }
}

/// Draws the map; `None` after an interrupt.
pub(super) fn frontier(
    file: &SystemFile,
    text: &str,
    (first, seeds): (u64, Option<u32>),
    progress: &Progress,
) -> Result<Option<FrontierEntry>, CliError> {
    let Some((across, up)) = text.split_once(',') else {
        return Err(CliError::usage(format_args!(
            "--frontier: `{text}` is one number; write two, as in size,length or rate=10/s..90/s,for=1s..20s"
        )));
    };
    let [across, up] = [across, up].map(|text| Range::parse("--frontier", text, file));
    let (across, up) = (across?, up?);
    let seeds = seeds.map_or(FRONTIER_SEEDS, u64::from);
    let at = |x: f64, y: f64| changed(file, &[across.changes(x), up.changes(y)].concat());
    let map = Frontier::new(across.values(FRONTIER_VALUES), up.values(FRONTIER_VALUES)).seeds(seeds);
    let map = map.run(first, at, progress).map_err(|error| CliError::usage(format_args!("--frontier: {error}")))?;
    Ok(map.map(|map| {
        let texts = |range: &Range, values: &[f64]| values.iter().map(|value| shown(range.unit, *value)).collect();
        FrontierEntry {
            labels: [texts(&across, &map.across), texts(&up, &map.up)],
            across: across.name,
            up: up.name,
            across_values: map.across,
            up_values: map.up,
            down: map.down,
            seeds,
        }
    }))
}

/// Formats a value with about three digits.
fn shown(unit: Unit, value: f64) -> String {
    let digits = 10_f64.powi(2 - value.abs().max(1e-9).log10().floor() as i32);
    unit.text((value * digits).round() / digits)
}

impl SearchEntry {
    /// Says where the borders are, and how sure that is.
    pub(super) fn sentences(&self) -> Vec<String> {
        let unit = self.unit.map_or(Unit::Factor, |unit| unit.0);
        let text = |value: f64| {
            let digits = 10_f64.powi(3 - value.abs().max(1e-9).log10().floor() as i32);
            unit.text((value * digits).round() / digits)
        };
        let (low, high) = (text(self.low), text(self.high));
        if self.borders.is_empty() {
            let down = self.tried.iter().filter(|one| 2 * one.down >= one.seeds).count();
            let what = if down > 0 { "stays down" } else { "does not stay down" };
            return vec![format!(
                "{}: the system {what} at any value that was tried from {low} to {high}",
                self.number
            )];
        }
        let sentence = |border: &BorderEntry| {
            let [better, worse] = if border.is_worse_above { ["up to", "from"] } else { ["from", "up to"] };
            let tail = |what: &str, side: &str, value: Option<f64>| {
                let end = if side == "from" { " on" } else { "" };
                value.map_or(String::new(), |value| {
                    format!("; {what} of the seeds stay down {side} {}{end}", text(value))
                })
            };
            format!(
                "{}: the system stays down {} {}{}{}",
                self.number,
                if border.is_worse_above { "above" } else { "below" },
                text(border.estimate),
                tail("at most 10%", better, border.at_most_a_tenth),
                tail("at least 90%", worse, border.at_least_nine_tenths),
            )
        };
        let runs: u64 = self.tried.iter().map(|one| one.seeds).sum();
        let count = format!("{} values from {low} to {high} were tried, with {runs} runs", self.tried.len());
        self.borders.iter().map(sentence).chain([count]).collect()
    }
}
