use core::time::Duration;

use stagger_sim::storm::Quantity;

use super::document::{Document, RunEntry, VerdictEntry};
use crate::output::error::CliError;
use crate::plan::brief::brief;
use crate::plot::Unit;
use crate::storm::{Condition, is_name_of};

/// A figure of a run, with its name in CSV and in assertions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metric {
    pub(crate) key: String,
    pub(crate) quantity: Quantity,
    /// `None` if it does not exist: for a time, never.
    pub(crate) value: Option<f64>,
}

/// Returns the figures of a run: of the system, of the services as `NAME.figure`, and of the edges as `FROM/TO.figure`.
pub(super) fn metrics(document: &Document, run: &RunEntry) -> Vec<Metric> {
    use Quantity::{Bool, Count, Number, Ratio, Seconds, Verdict};
    let verdict = VerdictEntry::ALL.iter().position(|(_, verdict)| *verdict == run.verdict);
    let mut all: Vec<(String, Quantity, Option<f64>)> = [
        ("verdict", Verdict, verdict.map(|position| position as f64)),
        ("metastable", Bool, Some(f64::from(u8::from(run.metastable)))),
        ("down_before_fault", Bool, Some(f64::from(u8::from(run.down_before_fault)))),
        ("fell_at_s", Seconds, run.fell_at_s),
        ("recovery_s", Seconds, run.recovery_s),
        ("success_ratio", Ratio, Some(run.success_ratio)),
        ("success_ratio_during_fault", Ratio, Some(run.success_ratio_during_fault)),
        ("final_success_ratio", Ratio, Some(run.final_success_ratio)),
        ("amplification", Number, Some(run.amplification)),
    ]
    .map(|(key, quantity, value)| (key.to_owned(), quantity, value))
    .into();
    for (service, of) in document.system.services.iter().zip(&run.services) {
        let figures = [
            ("throughput", Number, of.throughput),
            ("goodput", Number, of.goodput),
            ("wasted_ratio", Ratio, of.wasted_ratio),
            ("refused", Count, of.refused as f64),
            ("dropped", Count, of.dropped as f64),
            ("peak", Count, f64::from(of.peak)),
        ];
        let figures = figures.map(|(key, quantity, value)| (format!("{}.{key}", service.name), quantity, Some(value)));
        all.extend(figures);
    }
    for (edge, of) in document.system.edges.iter().zip(&run.edges) {
        let figures = [
            ("attempts_per_request", Number, of.attempts_per_request),
            ("attempts_per_request_during_fault", Number, of.attempts_per_request_during_fault),
            ("timed_out", Count, of.timed_out as f64),
            ("cached", Count, of.cached as f64),
        ];
        let name = format!("{}/{}", edge.from, edge.to);
        all.extend(figures.map(|(key, quantity, value)| (format!("{name}.{key}"), quantity, Some(value))));
    }
    all.into_iter().map(|(key, quantity, value)| Metric { key, quantity, value }).collect()
}

impl Metric {
    /// Formats the value for people.
    pub(crate) fn text(&self) -> String {
        let missing = if self.quantity == Quantity::Seconds { "never" } else { "not known" };
        let Some(value) = self.value else { return missing.to_owned() };
        match self.quantity {
            Quantity::Seconds => seconds(value),
            Quantity::Ratio => share(value),
            Quantity::Count => Unit::Count.label(value),
            Quantity::Bool => if value > 0.0 { "yes" } else { "no" }.to_owned(),
            Quantity::Verdict => VerdictEntry::ALL.get(value as usize).map_or("-", |(name, _)| name).to_owned(),
            _ => format!("{value:.2}"),
        }
    }
}

/// Parses the values of `--assert`: conditions on these figures, whose values do not matter.
pub(crate) fn parse_conditions(lists: &[String], known: &[Metric]) -> Result<Vec<(String, Condition)>, CliError> {
    let parse = |text: &str| {
        Condition::parse(text, |name| {
            let metric = known.iter().find(|metric| is_name_of(&metric.key, name));
            metric.map(|metric| (metric.key.clone(), metric.quantity)).ok_or_else(|| {
                let all: Vec<_> = known.iter().map(|metric| &*metric.key).collect();
                match stagger_core::text::nearest(name, all.iter().copied()) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None => format!("there are {}", all.join(", ")),
                }
            })
        })
    };
    let items = lists.iter().flat_map(|list| list.split(',')).map(|item| parse(item.trim()));
    items.collect::<Result<_, _>>().map_err(|error| CliError::usage(format_args!("--assert: {error}")))
}

/// Returns a sentence for each condition that these figures do not meet. `whose` says which run they belong to.
pub(crate) fn failures(of: &[Metric], conditions: &[(String, Condition)], whose: &str) -> Vec<String> {
    let failure = |(key, condition): &(String, Condition)| {
        let metric = of.iter().find(|metric| metric.key == *key)?;
        let holds = condition.holds(metric.value);
        (!holds).then(|| format!("{}: {key} is {} {whose}", condition.text, metric.text()))
    };
    conditions.iter().filter_map(failure).collect()
}

pub(crate) fn seconds(value: f64) -> String {
    brief(Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(Duration::MAX))
}

pub(super) fn share(value: f64) -> String {
    format!("{:.1}%", 100.0 * value)
}

/// Returns the mean of a figure over the runs; `None` if it does not exist for at least one of them.
pub(super) fn mean<T>(runs: &[RunEntry], of: impl Fn(&RunEntry) -> T) -> Option<f64>
where
    T: Into<Option<f64>>,
{
    let sum: Option<f64> = runs.iter().map(|run| of(run).into()).sum();
    sum.filter(|_| !runs.is_empty()).map(|sum| sum / runs.len() as f64)
}
