use core::fmt;

use stagger_sim::lint::parse_number;
use stagger_sim::storm::ScenarioSpec;

use super::measure::{Measure, Quantity, measures};
use super::record::Records;
use super::words;
use crate::error::CliError;

/// Something that must hold for every policy and every seed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Assertion {
    measure: Measure,
    relation: Relation,
    limit: f64,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
}

/// Longer signs first, or `<=` would be read as `<`.
const RELATIONS: [(&str, Relation); 5] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Below),
    (">", Relation::Above),
    ("=", Relation::Equal),
];

/// A run for which something does not hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    name: String,
    seed: u64,
    key: &'static str,
    shown: String,
    wanted: String,
}

/// What must hold of this scenario, of all lists.
///
/// # Errors
/// One that cannot be understood.
pub(crate) fn assertions(lists: &[String], scene: &ScenarioSpec) -> Result<Vec<Assertion>, CliError> {
    let all = lists.iter().map(|list| Assertion::list(list, measures(scene))).collect::<Result<Vec<_>, _>>();
    Ok(all.map_err(|error| CliError::usage(format_args!("--assert: {error}")))?.concat())
}

impl Assertion {
    /// All of a list, like `peak_1s<=600,recovered_p99<=30s`.
    ///
    /// # Errors
    /// One that cannot be understood.
    pub(crate) fn list(text: &str, measures: &[Measure]) -> Result<Vec<Self>, String> {
        text.split(',').map(|one| Self::new(one.trim(), measures)).collect()
    }

    fn new(text: &str, measures: &[Measure]) -> Result<Self, String> {
        let parts = RELATIONS.iter().find_map(|(sign, relation)| Some((text.split_once(sign)?, *relation)));
        let Some(((name, value), relation)) = parts else {
            return Err(format!("`{text}` compares nothing; write it like peak_1s<=600"));
        };
        let name = name.trim();
        let Some(measure) = measures.iter().find(|measure| is_named(measure.key, name)) else {
            let known: Vec<&str> = measures.iter().map(|measure| measure.key).collect();
            return Err(format!("`{name}` is not a figure of this scenario; it has {}", known.join(", ")));
        };
        let limit = limit(value.trim(), measure.quantity)?;
        Ok(Self { measure: *measure, relation, limit, text: text.to_owned() })
    }

    /// The runs for which it does not hold.
    pub(crate) fn failures(&self, records: &Records) -> Vec<Failure> {
        let mut failures = Vec::new();
        for row in &records.rows {
            for run in &row.runs {
                let value = self.measure.read(run);
                if !self.holds(value) {
                    failures.push(Failure {
                        name: row.name.clone(),
                        seed: run["seed"].as_u64().unwrap_or_default(),
                        key: self.measure.key,
                        shown: self.measure.show(value),
                        wanted: self.text.clone(),
                    });
                }
            }
        }
        failures
    }

    fn holds(&self, value: Option<f64>) -> bool {
        // What never happens takes longer than anything; a share of it is nothing that could hold.
        let never = if self.measure.quantity == Quantity::Seconds { f64::INFINITY } else { f64::NAN };
        let value = value.unwrap_or(never);
        match self.relation {
            Relation::Below => value < self.limit,
            Relation::AtMost => value <= self.limit,
            Relation::Above => value > self.limit,
            Relation::AtLeast => value >= self.limit,
            Relation::Equal => (value - self.limit).abs() <= f64::EPSILON * self.limit.abs(),
        }
    }
}

/// The unit at the end of a name may be left out.
fn is_named(key: &str, name: &str) -> bool {
    key == name || key.strip_suffix("_s") == Some(name)
}

fn limit(text: &str, quantity: Quantity) -> Result<f64, String> {
    match quantity {
        Quantity::Seconds => words::length(text).map(|length| length.as_secs_f64()),
        Quantity::Verdict => words::one_of(text, &[("no", 0.0), ("yes", 1.0)]),
        Quantity::Share | Quantity::Count | Quantity::Number => {
            let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
            parse_number(number)
                .map(|number| number / whole)
                .map_err(|_| format!("`{text}` is not a number; write it like 600, 10k, 2.5 or 95%"))
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, seed, key, shown, wanted } = self;
        write!(f, "{wanted} does not hold for {name} with seed {seed}: {key} is {shown}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::record::Record;
    use super::*;

    fn reconnect() -> &'static [Measure] {
        measures(&ScenarioSpec::from(&stagger_sim::reconnect::ReconnectScenario::builder(1).build().unwrap()))
    }

    fn records() -> Records {
        let runs = vec![json!({"seed": 3, "peak_1s": 600, "recovered_p99_s": null, "efficiency_time": null})];
        let row = Record { name: "ours".to_owned(), policy: String::new(), guards: None, runs };
        Records { measures: reconnect(), rows: vec![row] }
    }

    #[test]
    fn limits_hold_or_are_told_with_the_figure() {
        for (text, want) in [
            ("peak_1s<=600", None),
            ("peak_1s=600", None),
            ("peak_1s<600", Some("peak_1s<600 does not hold for ours with seed 3: peak_1s is 600")),
            ("peak_1s>=0.7k", Some("peak_1s>=0.7k does not hold for ours with seed 3: peak_1s is 600")),
            (
                "recovered_p99<=30s",
                Some("recovered_p99<=30s does not hold for ours with seed 3: recovered_p99_s is never"),
            ),
            ("recovered_p99>30s", None),
            (
                "efficiency_time>=5%",
                Some("efficiency_time>=5% does not hold for ours with seed 3: efficiency_time is -"),
            ),
        ] {
            let failures: Vec<_> = Assertion::list(text, reconnect()).unwrap()[0].failures(&records());
            assert_eq!(failures.first().map(ToString::to_string).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_refused_with_the_way_out() {
        for (text, want) in [
            ("peak_1s", "write it like peak_1s<=600"),
            ("peek<=6", "it has clients, peak_100ms, peak_1s"),
            ("peak_1s<=NaN", "is not a number; write it like 600"),
            ("t99<=soon", "soon"),
        ] {
            let error = Assertion::list(text, reconnect()).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
