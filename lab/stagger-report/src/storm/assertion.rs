//! Assertions on the figures of runs, such as `peak_1s<=600`.

use stagger_core::text::parse_number;
use stagger_sim::storm::{Metric, MetricValue, Quantity, RunReport, ScenarioSpec, VerdictKind};
use stagger_terminal::output::error::CliError;

use super::parse;
use super::results::{Results, format_of};

/// Condition that every policy and seed must meet.
#[derive(Clone, Debug)]
pub struct Assertion {
    subject: Asserted,
    condition: Condition,
}

/// What an assertion is about.
#[derive(Clone, Copy, Debug)]
enum Asserted {
    Metric(Metric),
    /// Whether a measured run agrees with its simulations.
    Agreement,
}

/// The name of [`Asserted::Agreement`].
const AGREES: &str = "agrees";

/// Condition on a value, such as `peak_1s<=600`.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The condition as it was given.
    pub text: String,
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

/// Parses the values of `--assert` for this scenario. If its runs are compared with simulations, there is `agrees`,
/// too.
pub fn parse_assertions(lists: &[String], spec: &ScenarioSpec, is_compared: bool) -> Result<Vec<Assertion>, CliError> {
    let parse = |list: &String| Assertion::parse_list(list, spec.metrics(), is_compared);
    let all = lists.iter().map(parse).collect::<Result<Vec<_>, _>>();
    Ok(all.map_err(|error| CliError::usage(format_args!("--assert: {error}")))?.concat())
}

impl Assertion {
    /// Parses a comma-separated list such as `peak_1s<=600,recovered_p99<=30s`.
    fn parse_list(text: &str, metrics: &[Metric], is_compared: bool) -> Result<Vec<Self>, String> {
        text.split(',').map(|item| Self::parse(item.trim(), metrics, is_compared)).collect()
    }

    fn parse(text: &str, metrics: &[Metric], is_compared: bool) -> Result<Self, String> {
        let (subject, condition) = Condition::parse(text, |name| {
            if is_compared && name == AGREES {
                return Ok((Asserted::Agreement, Quantity::Bool));
            }
            let metric = metrics.iter().find(|metric| is_name_of(metric.key, name));
            metric.map(|metric| (Asserted::Metric(*metric), metric.quantity)).ok_or_else(|| {
                let known = metrics.iter().map(|metric| metric.key).chain(is_compared.then_some(AGREES));
                format!("this scenario has {}", known.collect::<Vec<_>>().join(", "))
            })
        })?;
        Ok(Self { subject, condition })
    }

    /// Returns a sentence for each run that does not meet the assertion.
    pub(crate) fn failures(&self, results: &Results<'_>) -> Vec<String> {
        let mut failures = Vec::new();
        for row in &results.rows {
            for run in &row.runs {
                let (value, metric, actual) = self.subject.of(run);
                if !self.condition.holds(value) {
                    let text = &self.condition.text;
                    failures.push(format!("{text}: {metric} is {actual} for {} with seed {}", row.name, run.seed));
                }
            }
        }
        failures
    }
}

impl Asserted {
    /// Returns the value of a run, what it is the value of, and the value as text.
    fn of(&self, run: &RunReport) -> (Option<f64>, &'static str, String) {
        match self {
            Self::Metric(metric) => {
                let value = metric.value(&run.figures).map(MetricValue::as_f64);
                (value, metric.key, format_of(metric, value, core::slice::from_ref(run)))
            }
            Self::Agreement => {
                let (value, text) = match agrees(run) {
                    Some(true) => (Some(1.0), "yes"),
                    Some(false) => (Some(0.0), "no"),
                    None => (None, "unknown (an unreliable run)"),
                };
                (value, AGREES, text.to_owned())
            }
        }
    }
}

/// Returns whether a measured run agrees with its simulations; `None` if nothing says so.
fn agrees(run: &RunReport) -> Option<bool> {
    run.measured.as_ref()?.agreement.as_ref()?.agrees
}

impl Condition {
    /// Parses a condition. `find` returns the metric of a name with its quantity, or says which there are.
    pub fn parse<M>(text: &str, find: impl FnOnce(&str) -> Result<(M, Quantity), String>) -> Result<(M, Self), String> {
        let parts = OPERATORS.iter().find_map(|(operator, comparison)| Some((text.split_once(operator)?, *comparison)));
        let Some(((name, value), comparison)) = parts else {
            return Err(format!("`{text}` has no comparison; expected a form like peak_1s<=600"));
        };
        let name = name.trim();
        let (metric, quantity) = find(name).map_err(|known| format!("unknown metric `{name}`; {known}"))?;
        let limit = limit(value.trim(), quantity)?;
        Ok((metric, Self { text: text.to_owned(), comparison, limit, quantity }))
    }

    /// Returns whether a value meets the condition.
    pub fn holds(&self, value: Option<f64>) -> bool {
        // A time that is missing means never, so it is infinite. Any other missing value fails every comparison.
        let never = if self.quantity == Quantity::Seconds { f64::INFINITY } else { f64::NAN };
        (self.comparison)(value.unwrap_or(never), self.limit)
    }
}

/// Returns whether `name` is the metric `key`; the unit suffix `_s` may be omitted.
pub(crate) fn is_name_of(key: &str, name: &str) -> bool {
    key == name || key.strip_suffix("_s") == Some(name)
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
    use stagger_core::{Policy, Seed};
    use stagger_sim::reconnect::ReconnectScenario;
    use stagger_sim::storm::{Agreement, Measurements, ReconnectReport, RunFigures, StormReport};

    use super::*;

    /// A run with 600 attempts in one second, after which not all clients are connected.
    fn storm() -> StormReport {
        let scenario = ReconnectScenario::builder(1).build().unwrap();
        let mut report = ReconnectReport::from_figures(&scenario.run(&Policy::DEFAULT, Seed::new(3)));
        (report.peak_1s, report.recovered_p99_s, report.efficiency_time) = (600, None, None);
        let run = (Seed::new(3), RunFigures::Reconnect(Box::new(report)));
        StormReport::new(&scenario).with_strategy("ours", &Policy::DEFAULT, [run])
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
            let assertions = Assertion::parse_list(text, ReconnectReport::METRICS, false).unwrap();
            let failures = assertions[0].failures(&Results::from_storm(&storm()));
            assert_eq!(failures.first().map(String::as_str), want, "{text}");
        }
    }

    #[test]
    fn an_unreliable_run_does_not_agree_and_simulations_have_no_agreement() {
        let measured = |agrees| {
            let (mut agreement, mut measured) = (Agreement::default(), Measurements::default());
            agreement.agrees = agrees;
            measured.agreement = Some(agreement);
            storm().with_measurements(measured)
        };
        let assertion = &Assertion::parse_list("agrees=yes", ReconnectReport::METRICS, true).unwrap()[0];
        for (agrees, want) in
            [(Some(true), None), (Some(false), Some("no")), (None, Some("unknown (an unreliable run)"))]
        {
            let storm = measured(agrees);
            let failures = assertion.failures(&Results::from_storm(&storm));
            let want = want.map(|value| format!("agrees=yes: agrees is {value} for ours with seed 3"));
            assert_eq!(failures.first(), want.as_ref());
        }
        let error = Assertion::parse_list("agrees=yes", ReconnectReport::METRICS, false).unwrap_err();
        assert!(error.contains("unknown metric `agrees`"), "{error}");
    }

    #[test]
    fn an_invalid_assertion_is_rejected_with_a_remedy() {
        for (text, want) in [
            ("peak_1s", "expected a form like peak_1s<=600"),
            ("peek<=6", "this scenario has clients, peak_100ms, peak_1s"),
            ("peak_1s<=NaN", "is not a number; expected a form like 600"),
            ("t99<=soon", "soon"),
        ] {
            let error = Assertion::parse_list(text, ReconnectReport::METRICS, false).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
