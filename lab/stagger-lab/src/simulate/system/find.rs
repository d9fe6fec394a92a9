//! `--find` and `--frontier`: searches and maps over numbers of the file.

use serde::Serialize;
use stagger_sim::Progress;
use stagger_sim::system::{BorderPoint, Found, Frontier, Search, System, SystemFile, SystemFileError, Unit};
use stagger_terminal::output::error::CliError;

/// Seeds that a search adds at a time, unless the user says how many. Four times the seeds halve the interval.
const SEEDS: u64 = 24;

/// Half the width of the interval to which a search with [`SEEDS`] narrows a border.
const PRECISION: f64 = 0.01;

/// The most runs of a search, for each seed.
const RUNS_PER_SEED: u64 = 128;

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
    /// Values apart from the borders at which chance decides.
    undecided: Vec<f64>,
    /// Runs that are not decided after 16 times the horizon, and count on neither side.
    not_decided: u64,
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
    /// The value at which half of the seeds stay down. For whole numbers, it lies between two of them.
    estimate: f64,
    /// Its 95% interval.
    estimate_interval: [f64; 2],
    /// Whether the system stays down above it.
    is_worse_above: bool,
    /// The value next to it from which at most a tenth of the seeds stays down; null if it is outside of the range.
    at_most_a_tenth: Option<f64>,
    /// Its 95% interval.
    at_most_a_tenth_interval: Option<[f64; 2]>,
    /// The value next to it from which at least nine tenths of the seeds stay down; null if it is outside of the range.
    at_least_nine_tenths: Option<f64>,
    /// Its 95% interval.
    at_least_nine_tenths_interval: Option<[f64; 2]>,
}

/// A value that was tried.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TriedEntry {
    /// The value.
    value: f64,
    /// Seeds that stay down.
    down: u64,
    /// Seeds that are not decided.
    not_decided: u64,
    /// Number of seeds, those that are not decided included.
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
    /// The share of the seeds that are not decided after 16 times the horizon: rows of cells.
    pub(super) not_decided: Vec<Vec<f64>>,
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
    let precision = PRECISION * (SEEDS as f64 / seeds.max(1) as f64).sqrt();
    let search = Search::between(range.low, range.high).seeds(seeds).precision(precision);
    let search = search.max_runs(RUNS_PER_SEED.saturating_mul(seeds));
    let search = if range.unit.is_whole() { search.whole_numbers() } else { search };
    let found = search.run_from(first, |value| changed(file, &range.changes(value)), progress);
    let found = found.map_err(|error| CliError::usage(format_args!("--find: {error}")))?;
    Ok(found.map(|found| entry(&range, &found)))
}

fn entry(range: &Range, found: &Found) -> SearchEntry {
    let interval = |point: BorderPoint| [point.low, point.high];
    let borders = found.borders.iter().map(|border| BorderEntry {
        estimate: border.half.value,
        estimate_interval: interval(border.half),
        is_worse_above: border.is_worse_above,
        at_most_a_tenth: border.tenth.map(|point| point.value),
        at_most_a_tenth_interval: border.tenth.map(interval),
        at_least_nine_tenths: border.nine_tenths.map(|point| point.value),
        at_least_nine_tenths_interval: border.nine_tenths.map(interval),
    });
    let tried = found.tried.iter().map(|one| TriedEntry {
        value: one.value,
        down: one.down,
        not_decided: one.not_decided,
        seeds: one.seeds,
    });
    SearchEntry {
        number: range.name.clone(),
        low: range.low,
        high: range.high,
        borders: borders.collect(),
        undecided: found.undecided.clone(),
        not_decided: found.not_decided,
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
            not_decided: map.not_decided,
            seeds,
        }
    }))
}

impl FrontierEntry {
    /// Says in how many cells runs are not decided, if there are any.
    pub(super) fn sentence(&self) -> Option<String> {
        let count = self.not_decided.iter().flatten().filter(|share| **share > 0.0).count();
        let cells = self.not_decided.iter().flatten().count();
        (count > 0).then(|| {
            format!(
                "in {count} of {cells} cells, runs are not decided after {} times the horizon, marked by ? where no \
                 other run is up; raise `horizon` to decide them",
                System::LONGEST_RUN
            )
        })
    }
}

/// Formats a value with about three digits.
fn shown(unit: Unit, value: f64) -> String {
    let digits = 10_f64.powi(2 - value.abs().max(1e-9).log10().floor() as i32);
    unit.text((value * digits).round() / digits)
}

impl SearchEntry {
    /// Says where the borders are, and how sure that is.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<_> = self.borders.iter().map(|border| self.border(border)).collect();
        if sentences.is_empty() {
            sentences.push(self.without_border());
        }
        if !self.undecided.is_empty() {
            sentences.push(self.chance());
        }
        let runs: u64 = self.tried.iter().map(|one| one.seeds).sum();
        if self.not_decided > 0 {
            let open: Vec<_> = self.tried.iter().filter(|one| one.not_decided > 0).map(|one| one.value).collect();
            let [low, high] = [open.first(), open.last()].map(|end| self.text(end.copied().unwrap_or(0.0)));
            let where_ = if low == high { format!("at {low}") } else { format!("between {low} and {high}") };
            sentences.push(format!(
                "{} of {runs} runs, {where_}, are not decided after {} times the horizon: they count on neither side; \
                 raise `horizon` to decide them",
                self.not_decided,
                System::LONGEST_RUN
            ));
        }
        sentences.push(format!(
            "{} values from {} to {} were tried, with {runs} runs; intervals are of 95% confidence",
            self.tried.len(),
            self.text(self.low),
            self.text(self.high)
        ));
        sentences
    }

    fn border(&self, border: &BorderEntry) -> String {
        let is_whole = self.unit().is_whole();
        // A whole number is on one side of a border between two of them.
        let [first, last] = if border.is_worse_above { ["from", "up to"] } else { ["up to", "from"] };
        let on = |side: &str| if side == "from" { " on" } else { "" };
        let half = match (is_whole, border.is_worse_above) {
            (true, true) => format!("from {} on", self.text(border.estimate.ceil())),
            (true, false) => format!("up to {}", self.text(border.estimate.floor())),
            (false, true) => format!("above {}", self.text(border.estimate)),
            (false, false) => format!("below {}", self.text(border.estimate)),
        };
        let tail = |what: &str, side: &str, outside: &str, point: Option<f64>, interval: Option<[f64; 2]>| {
            let (Some(value), Some(interval)) = (point, interval) else {
                return format!("; {what} stay down only {outside}");
            };
            let value = match (is_whole, side) {
                (true, "from") => value.ceil(),
                (true, _) => value.floor(),
                (false, _) => value,
            };
            format!("; {what} stay down {side} {}{}{}", self.text(value), on(side), self.interval(interval))
        };
        let [below, above] = [self.low, self.high].map(|end| self.text(end));
        let [better, worse] = if border.is_worse_above {
            [format!("below {below}"), format!("above {above}")]
        } else {
            [format!("above {above}"), format!("below {below}")]
        };
        format!(
            "{}: the system stays down {half}{}{}{}",
            self.number,
            self.interval(border.estimate_interval),
            tail("at most 10% of the seeds", last, &better, border.at_most_a_tenth, border.at_most_a_tenth_interval),
            tail("at least 90%", first, &worse, border.at_least_nine_tenths, border.at_least_nine_tenths_interval),
        )
    }

    /// Returns an interval in parentheses. For whole numbers, it is that of a border between them, and says nothing.
    fn interval(&self, [low, high]: [f64; 2]) -> String {
        if self.unit().is_whole() {
            return String::new();
        }
        let less = if low <= self.low { " or less" } else { "" };
        let more = if high >= self.high { " or more" } else { "" };
        format!(" ({}{less} to {}{more})", self.text(low), self.text(high))
    }

    fn without_border(&self) -> String {
        let (low, high) = (self.text(self.low), self.text(self.high));
        let decided = |one: &&TriedEntry| one.not_decided < one.seeds;
        let down = self.tried.iter().filter(decided).filter(|one| 2 * one.down >= one.seeds - one.not_decided).count();
        let what = match (self.undecided.is_empty(), self.tried.iter().filter(decided).count(), down) {
            (false, ..) => "has no border that chance would not explain",
            (true, 0, _) => "is not decided at any value that was tried",
            (true, _, 0) => "does not stay down at any value that was tried",
            (true, ..) => "stays down at any value that was tried",
        };
        format!("{}: the system {what} from {low} to {high}", self.number)
    }

    fn chance(&self) -> String {
        let of = |value: &f64| self.tried.iter().find(|one| one.value.total_cmp(value).is_eq());
        let values = self.undecided.iter().filter_map(of);
        let values = values.map(|one| {
            format!(
                "{}% of {} seeds at {}",
                (100.0 * one.down as f64 / (one.seeds - one.not_decided).max(1) as f64).round(),
                one.seeds - one.not_decided,
                self.text(one.value)
            )
        });
        format!("chance decides elsewhere: {} stay down", values.collect::<Vec<_>>().join(", "))
    }

    fn unit(&self) -> Unit {
        self.unit.map_or(Unit::Factor, |unit| unit.0)
    }

    /// Formats a value with about four digits.
    fn text(&self, value: f64) -> String {
        let digits = 10_f64.powi(3 - value.abs().max(1e-9).log10().floor() as i32);
        self.unit().text((value * digits).round() / digits)
    }
}

/// A number of a file, or several that change together, with the values between which it is searched.
pub(super) struct Range {
    /// As the user wrote it.
    pub(super) name: String,
    pub(super) unit: Unit,
    pub(super) low: f64,
    pub(super) high: f64,
    paths: Vec<String>,
}

impl Range {
    /// Parses `NAME` or `NAME=LOW..HIGH`. `flag` is where it was given.
    pub(super) fn parse(flag: &str, text: &str, file: &SystemFile) -> Result<Self, CliError> {
        let wrong = |error: String| CliError::usage(format_args!("{flag}: {error}"));
        let (name, values) = match text.split_once('=') {
            Some((name, values)) => (name, Some(values)),
            None => (text, None),
        };
        let numbers = file.find(name.trim()).map_err(wrong)?;
        let Some(first) = numbers.first() else { return Err(wrong(format!("`{name}` is not a number of the file"))) };
        let unit = first.unit;
        if let Some(other) = numbers.iter().find(|number| number.unit != unit) {
            return Err(wrong(format!(
                "`{name}` stands for {} and {}; use one of these paths",
                first.path, other.path
            )));
        }
        let [low, high] = match values {
            Some(values) => {
                let (low, high) = values.split_once("..").ok_or_else(|| {
                    wrong(format!(
                        "`{values}` is not a range; write two values, as in {name}={}..{}",
                        unit.text(1.0),
                        unit.text(9.0)
                    ))
                })?;
                [unit.parse(low.trim()).map_err(wrong)?, unit.parse(high.trim()).map_err(wrong)?]
            }
            None => usual(unit, first.value, file.system()),
        };
        if low >= high {
            return Err(wrong(format!("{} is not below {}; swap them", unit.text(low), unit.text(high))));
        }
        let paths = numbers.iter().map(|number| number.path.clone()).collect();
        Ok(Self { name: name.trim().to_owned(), unit, low, high, paths })
    }

    /// Returns values at equal distances.
    pub(super) fn values(&self, count: usize) -> Vec<f64> {
        let step = (self.high - self.low) / (count - 1) as f64;
        let values = (0..count).map(|nth| self.low + step * nth as f64);
        let mut values: Vec<_> = if self.unit.is_whole() { values.map(f64::round).collect() } else { values.collect() };
        values.dedup();
        values
    }

    /// Returns the changes that give the number this value.
    pub(super) fn changes(&self, value: f64) -> Vec<(&str, String)> {
        let text = self.unit.text(value);
        self.paths.iter().map(|path| (&**path, text.clone())).collect()
    }
}

/// Returns the system of a file with these changes.
pub(super) fn changed(file: &SystemFile, changes: &[(&str, String)]) -> Result<System, SystemFileError> {
    Ok(file.with_all(changes.iter().map(|(path, text)| (*path, &**text)))?.system().clone())
}

/// Returns the values between which a number is searched: a rate up to the capacity of the service that is overloaded
/// first, a share from 0 to 1, and others from a tenth of the value to three times of it.
fn usual(unit: Unit, value: f64, system: &System) -> [f64; 2] {
    match unit {
        Unit::PerSecond => {
            let layout = system.layout();
            let most = layout.services.iter().map(|service| system.rate() * service.capacity / service.load);
            let most = most.filter(|rate| rate.is_finite()).fold(f64::INFINITY, f64::min);
            let most = if most.is_finite() { most } else { 10.0 * value };
            [0.02 * most, most]
        }
        Unit::Share => [0.0, 1.0],
        Unit::Count => [1.0, (3.0 * value).round().max(4.0)],
        _ => [0.1 * value, 3.0 * value],
    }
}
