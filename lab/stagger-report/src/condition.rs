//! Assertions on the figures of runs, such as `peak_1s<=600`.

use stagger_core::text::{nearest, parse_number};
use stagger_sim::storm::{MetricValue, Quantity, VerdictKind};
use stagger_terminal::output::error::CliError;

use crate::parse;
use crate::report::{Figures, Metric};

/// Condition that every run must meet.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The condition as it was given.
    text: String,
    /// The name of the metric.
    key: String,
    comparison: Comparison,
    limit: f64,
    quantity: Quantity,
}

/// Returns whether a value meets a limit.
type Comparison = fn(f64, f64) -> bool;

/// Longer operators first, so that `<=` is not parsed as `<`.
const OPERATORS: [(&str, Comparison); 5] = [
    ("<=", |value, limit| value <= limit),
    (">=", |value, limit| value >= limit),
    ("<", |value, limit| value < limit),
    (">", |value, limit| value > limit),
    ("=", |value, limit| (value - limit).abs() <= f64::EPSILON * limit.abs()),
];

/// Parses the values of `--assert`: comma-separated conditions on these metrics, whose unit suffix `_s` may be omitted.
pub fn parse_conditions(lists: &[String], metrics: &[Metric]) -> Result<Vec<Condition>, CliError> {
    let items = lists.iter().flat_map(|list| list.split(','));
    let parsed: Result<_, _> = items.map(|item| Condition::parse(item.trim(), metrics)).collect();
    parsed.map_err(|error: String| CliError::usage(format_args!("--assert: {error}")))
}

impl Condition {
    fn parse(text: &str, metrics: &[Metric]) -> Result<Self, String> {
        let parts = OPERATORS.iter().find_map(|(operator, comparison)| Some((text.split_once(operator)?, *comparison)));
        let Some(((name, value), comparison)) = parts else {
            return Err(format!("`{text}` has no comparison; expected a form like peak_1s<=600"));
        };
        let name = name.trim();
        let is_it = |metric: &&Metric| metric.key == name || metric.key.strip_suffix("_s") == Some(name);
        let Some(Metric { key, quantity, .. }) = metrics.iter().find(is_it) else {
            let known = || metrics.iter().map(|metric| &*metric.key);
            let hint = match nearest(name, known()) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("there are {}", known().collect::<Vec<_>>().join(", ")),
            };
            return Err(format!("unknown metric `{name}`; {hint}"));
        };
        let limit = limit(value.trim(), *quantity)?;
        Ok(Self { text: text.to_owned(), key: key.clone(), comparison, limit, quantity: *quantity })
    }

    fn holds(&self, value: Option<f64>) -> bool {
        // A time that is missing means never, so it is infinite. Any other missing value fails every comparison.
        let never = if self.quantity == Quantity::Seconds { f64::INFINITY } else { f64::NAN };
        (self.comparison)(value.unwrap_or(never), self.limit)
    }
}

/// Returns a sentence for each run that does not meet a condition.
pub(crate) fn failures(figures: &Figures, conditions: &[Condition]) -> Vec<String> {
    let mut failures = Vec::new();
    for condition in conditions {
        let Some(at) = figures.metrics.iter().position(|metric| metric.key == condition.key) else { continue };
        let runs = figures.rows.iter().filter(|row| row.is_asserted).flat_map(|row| &row.runs);
        for run in runs {
            let value = run.values[at].map(MetricValue::as_f64);
            if condition.holds(value) {
                continue;
            }
            let actual = figures.metrics[at].text_of(value, core::slice::from_ref(run));
            failures.push(format!("{}: {} is {actual} {}", condition.text, condition.key, run.whose));
        }
    }
    failures
}

fn limit(text: &str, quantity: Quantity) -> Result<f64, String> {
    match quantity {
        Quantity::Seconds => parse::duration(text).map(|duration| duration.as_secs_f64()),
        Quantity::Bool => parse::keyword(text, &[("no", 0.0), ("yes", 1.0)]),
        Quantity::Verdict => parse::keyword(
            text,
            &VerdictKind::ALL.map(|verdict| (verdict.name(), MetricValue::Verdict(verdict).as_f64())),
        ),
        _ => {
            let (number, divisor) = match text.strip_suffix('%') {
                Some(percent) => (percent, 100.0),
                None => (text, 1.0),
            };
            parse_number(number)
                .map(|number| number / divisor)
                .map_err(|_| format!("`{text}` is not a number; expected a form like 600, 10k, 2.5 or 95%"))
        }
    }
}

#[cfg(test)]
mod tests {
    use stagger_sim::storm::ReconnectReport;

    use super::*;
    use crate::report::{Row, Run};

    /// A run with 600 attempts in one second, after which not all clients are connected.
    fn figures() -> Figures {
        let metrics: Vec<Metric> = ReconnectReport::METRICS.iter().map(Metric::from).collect();
        let value = |metric: &Metric| if metric.key == "peak_1s" { Some(MetricValue::Integer(600)) } else { None };
        let values = metrics.iter().map(value).collect();
        let run = Run { whose: "for ours with seed 3".to_owned(), values, ..Run::default() };
        let rows = vec![Row { is_asserted: true, runs: vec![run], ..Row::default() }];
        Figures { metrics, rows, ..Figures::default() }
    }

    #[test]
    fn a_failed_assertion_names_the_actual_value() {
        for (text, want) in [
            ("peak_1s<=600", None),
            ("peak_1s=600", None),
            ("peak_1s<600", Some("peak_1s<600: peak_1s is 600 for ours with seed 3")),
            ("peak_1s>=0.7k", Some("peak_1s>=0.7k: peak_1s is 600 for ours with seed 3")),
            ("recovered_p99<=30s", Some("recovered_p99<=30s: recovered_p99_s is never for ours with seed 3")),
            ("recovered_p99_s>30s", None),
            ("efficiency_time>=5%", Some("efficiency_time>=5%: efficiency_time is - for ours with seed 3")),
        ] {
            let figures = figures();
            let conditions = parse_conditions(&[text.to_owned()], &figures.metrics).unwrap();
            assert_eq!(failures(&figures, &conditions).first().map(String::as_str), want, "{text}");
        }
    }

    #[test]
    fn assertions_apply_to_some_rows() {
        let mut figures = figures();
        figures.rows[0].is_asserted = false;
        let conditions = parse_conditions(&["peak_1s<1".to_owned()], &figures.metrics).unwrap();
        assert_eq!(failures(&figures, &conditions), [""; 0]);
    }

    #[test]
    fn an_invalid_assertion_is_rejected_with_a_remedy() {
        for (text, want) in [
            ("peak_1s", "expected a form like peak_1s<=600"),
            ("peek_1s<=6", "unknown metric `peek_1s`; did you mean `peak_1s`?"),
            ("weather<=6", "there are clients, peak_100ms, peak_1s"),
            ("peak_1s<=NaN", "is not a number; expected a form like 600"),
            ("t99<=soon", "soon"),
        ] {
            let error = parse_conditions(&[text.to_owned()], &figures().metrics).unwrap_err().to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
