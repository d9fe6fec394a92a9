//! What a command has found out. It is computed once, and every format is written from it.

use core::time::Duration;

use stagger_sim::storm::{self, Better, Importance, MetricValue, Quantity, VerdictKind};
use stagger_terminal::plan::brief;
use stagger_terminal::plot::svg::{Graph, HeatMap};
use stagger_terminal::plot::{Figure, RenderOptions, Unit};

/// A report. Sentences have no full stop, and begin as they are printed.
#[derive(Default)]
pub struct Report {
    pub heading: &'static str,
    /// What was simulated or measured, in a line.
    pub scenario: String,
    /// The seeds, in a few words; empty if there are none.
    pub seeds: String,
    /// What happened, the most important sentence first.
    pub answer: Vec<String>,
    /// Why the figures may be wrong.
    pub warnings: Vec<String>,
    pub figures: Figures,
    pub parts: Vec<Part>,
    /// The document as JSON.
    pub document: String,
}

/// A part of a report, in the order in which they are shown.
pub enum Part {
    /// Where a terminal shows the scenario, of which a page has it below the answer.
    Scenario,
    /// Where a terminal shows the answer, with which a page begins.
    Answer,
    /// Of terminals: what a page has in its answer.
    Summary(String),
    /// The figures of [`Report::figures`].
    Figures,
    Table(Table),
    /// With a title on a page, unless it is empty.
    Policies(&'static str, Vec<Named>),
    /// What was answered or is known, and what follows.
    Reasons(Vec<(String, String)>),
    Finding(Finding),
    Text(String),
    /// Sentences with a title.
    List(&'static str, Vec<String>),
    /// Lines to copy, with their title.
    Code(&'static str, String),
    /// Sentences that a page shows when they are asked for.
    Notes(&'static str, Vec<String>),
    /// Of pages.
    Heading(String),
    /// Of pages.
    Pictures(Vec<Figure>),
    /// Of pages and SVG files.
    Chart(Chart),
    /// Of pages and SVG files.
    Graph(Graph),
    Map(HeatMap, MapText),
    /// Of terminals: named series on one scale.
    Curves(Vec<(&'static str, Vec<f64>)>),
}

/// Draws a map for a terminal.
pub type MapText = Box<dyn Fn(RenderOptions) -> String + Send + Sync>;

/// What is wrong somewhere, and how to fix it.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    pub is_warning: bool,
    pub code: String,
    pub title: String,
    /// The lines where it is.
    pub source: String,
    pub facts: Vec<String>,
    pub why: Option<String>,
    pub help: String,
    /// The lines that fix it.
    pub change: String,
    /// Where else the same is found.
    pub others: String,
}

impl Finding {
    pub(crate) const fn severity(&self) -> &'static str {
        if self.is_warning { "warning" } else { "note" }
    }
}

/// A policy with its name and what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub policy: String,
    /// Its guards, if there can be any.
    pub guards: Option<String>,
}

/// A table of texts. The first column is a name.
#[derive(Clone, Debug)]
pub struct Table {
    pub title: String,
    /// Each with whether it is left out of a narrow table.
    pub heads: Vec<(&'static str, bool)>,
    pub rows: Vec<Vec<String>>,
    /// The number of the row that is recommended.
    pub best: Option<usize>,
}

/// A chart, with its data as a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Name of the SVG file, without the extension.
    pub slug: &'static str,
    pub title: &'static str,
    /// Explanation of the chart, in a sentence or two.
    pub caption: String,
    pub figures: Vec<Figure>,
    /// The figures on a logarithmic scale; empty if that does not show more.
    pub logarithmic: Vec<Figure>,
    pub heads: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// The figures of all runs: what tables, CSV and assertions have.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub metrics: Vec<Metric>,
    pub rows: Vec<Row>,
    /// What a run is called in CSV: the names of [`Run::labels`].
    pub labels: &'static [&'static str],
    /// Heading of the sparklines.
    pub curve: &'static str,
}

/// A figure: its name in every format, and what is needed to show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name in CSV and in assertions.
    pub key: String,
    pub heading: String,
    pub quantity: Quantity,
    pub better: Better,
    pub importance: Importance,
}

/// Runs that differ in their seeds only.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub name: String,
    /// Rows of one group are compared with each other.
    pub group: String,
    /// Whether assertions apply to it.
    pub is_asserted: bool,
    /// Keys of the figures of which it is never the best.
    pub never_best: &'static [&'static str],
    pub runs: Vec<Run>,
    /// What a terminal draws beside the figures.
    pub curve: Vec<f64>,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub labels: Vec<String>,
    /// Which run it is, such as `for ours with seed 3`.
    pub whose: String,
    /// The values of the metrics, in their order.
    pub values: Vec<Option<MetricValue>>,
    /// What is said of a time that does not exist, unless it is never.
    pub absent: Option<&'static str>,
}

/// A figure of a row: the mean of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// `None` if the value does not exist for at least one run.
    pub value: Option<f64>,
    pub text: String,
    /// Whether no other row of the group has a better value, and at least one has a worse one.
    pub is_best: bool,
}

impl From<&storm::Metric> for Metric {
    fn from(metric: &storm::Metric) -> Self {
        let storm::Metric { key, heading, quantity, better, importance, .. } = *metric;
        Self { key: key.to_owned(), heading: heading.to_owned(), quantity, better, importance }
    }
}

impl Metric {
    /// Creates a figure that tables do not have.
    pub fn detail(key: impl Into<String>, quantity: Quantity) -> Self {
        let key = key.into();
        Self { heading: key.clone(), key, quantity, better: Better::Neither, importance: Importance::Detail }
    }

    /// Returns whether `a` is better than `b`; a missing value is worse than any other.
    fn is_better(&self, a: Option<f64>, b: Option<f64>) -> bool {
        match (a, b, self.better) {
            (_, _, Better::Neither) | (None, _, _) => false,
            (Some(_), None, _) => true,
            (Some(a), Some(b), Better::Lower) => a < b,
            (Some(a), Some(b), Better::Higher) => a > b,
        }
    }

    /// Returns a value of these runs as text.
    pub(crate) fn text_of(&self, value: Option<f64>, runs: &[Run]) -> String {
        let absent = runs.iter().find_map(|run| run.absent);
        match (value, absent, self.quantity) {
            (None, Some(absent), Quantity::Seconds) => absent.to_owned(),
            _ => self.text(value),
        }
    }

    /// Returns a value as text: a mean over runs, or `None` if it does not exist.
    fn text(&self, value: Option<f64>) -> String {
        let Some(value) = value else {
            return match self.quantity {
                Quantity::Seconds => "never",
                Quantity::Bool => "unknown",
                _ => "-",
            }
            .to_owned();
        };
        match self.quantity {
            Quantity::Count if value < 100.0 => Unit::Count.label((value * 10.0).round() / 10.0),
            Quantity::Count => Unit::Count.label(value.round()),
            Quantity::Seconds => seconds(value),
            Quantity::Ratio => share(value),
            // The mean over several runs is a share.
            Quantity::Bool if value <= 0.0 => "no".to_owned(),
            Quantity::Bool if value >= 1.0 => "yes".to_owned(),
            Quantity::Bool => format!("{:.0}% of runs", value * 100.0),
            Quantity::Verdict => {
                let is_it =
                    |verdict: &VerdictKind| (MetricValue::Verdict(*verdict).as_f64() - value).abs() < f64::EPSILON;
                VerdictKind::ALL.into_iter().find(is_it).map_or("mixed", VerdictKind::name).to_owned()
            }
            _ => format!("{value:.2}"),
        }
    }
}

impl Figures {
    /// Returns the numbers of the metrics that tables have.
    pub(crate) fn shown(&self) -> impl Iterator<Item = usize> {
        (0..self.metrics.len()).filter(|at| self.metrics[*at].importance > Importance::Detail)
    }

    /// Returns a metric of each row, by its key.
    pub(crate) fn of(&self, key: &str) -> Vec<Cell> {
        self.metrics.iter().position(|metric| metric.key == key).map_or_else(Vec::new, |at| self.column(at))
    }

    /// Returns a metric of each row.
    pub(crate) fn column(&self, at: usize) -> Vec<Cell> {
        let metric = &self.metrics[at];
        let values: Vec<Option<f64>> = self.rows.iter().map(|row| row.mean(at)).collect();
        let cell = |(row, value): (&Row, &Option<f64>)| {
            let mut others = self.rows.iter().zip(&values).filter(|(other, _)| other.group == row.group);
            let is_eligible = |row: &Row| !row.never_best.contains(&&*metric.key);
            let is_unbeaten = others
                .clone()
                .all(|(other, other_value)| !is_eligible(other) || !metric.is_better(*other_value, *value));
            let is_best = is_eligible(row) && is_unbeaten && others.any(|(_, other)| metric.is_better(*value, *other));
            Cell { value: *value, text: metric.text_of(*value, &row.runs), is_best }
        };
        self.rows.iter().zip(&values).map(cell).collect()
    }
}

impl Row {
    /// Returns the mean over the runs; `None` if the value does not exist for at least one of them.
    fn mean(&self, at: usize) -> Option<f64> {
        let values: Option<Vec<f64>> = self.runs.iter().map(|run| Some(run.values[at]?.as_f64())).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// Returns the JSON schema of a verdict.
#[cfg(feature = "schema")]
pub fn verdict_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": VerdictKind::ALL.map(VerdictKind::name) })
}

pub fn seconds(value: f64) -> String {
    brief(Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(Duration::MAX))
}

pub fn share(value: f64) -> String {
    format!("{:.1}%", 100.0 * value)
}

#[cfg(test)]
mod tests {
    use stagger_sim::storm::{OutageReport, ReconnectReport};

    use super::*;

    fn metric(key: &str) -> Metric {
        let mut metrics = ReconnectReport::METRICS.iter().chain(OutageReport::METRICS);
        metrics.find(|metric| metric.key == key).unwrap().into()
    }

    #[test]
    fn each_metric_has_its_own_direction_and_a_missing_value_is_worse_than_any_other() {
        for (key, a, b, want) in [
            ("recovered_p99_s", Some(1.0), Some(2.0), true),
            ("recovered_p99_s", Some(2.0), Some(1.0), false),
            ("recovered_p99_s", Some(1.0), Some(1.0), false),
            ("recovered_p99_s", Some(1e9), None, true),
            ("recovered_p99_s", None, Some(1e9), false),
            ("success_ratio", Some(0.9), Some(0.8), true),
            ("success_ratio", Some(0.8), Some(0.9), false),
            ("clients", Some(1.0), Some(2.0), false),
            ("clients", Some(2.0), Some(1.0), false),
            ("clients", Some(1.0), None, false),
        ] {
            assert_eq!(metric(key).is_better(a, b), want, "{key}: {a:?} before {b:?}");
        }
    }

    #[test]
    fn values_are_formatted_briefly() {
        for (key, value, want) in [
            ("peak_1s", Some(17_980.0), "17,980"),
            ("peak_1s", Some(1_234.4), "1,234"),
            ("attempts_p99", Some(6.5), "6.5"),
            ("attempts_per_client", Some(4.0), "4.00"),
            ("recovered_p99_s", Some(15.23), "15.2s"),
            ("recovered_p99_s", None, "never"),
            ("efficiency_time", None, "-"),
            ("success_ratio", Some(0.98765), "98.8%"),
            ("metastable", Some(1.0), "yes"),
            ("metastable", Some(0.5), "50% of runs"),
        ] {
            assert_eq!(metric(key).text(value), want, "{key}");
        }
    }
}
