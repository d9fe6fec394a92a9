//! A figure of a run, and conditions on figures.

use core::time::Duration;

use serde::Serialize;
use stagger_sim::storm::{Quantity, VerdictKind};
use stagger_terminal::output::error::CliError;
use stagger_terminal::plan::brief;
use stagger_terminal::plot::Unit;

use crate::storm::{Condition, is_name_of};

/// A figure of a run, with its name in CSV and in assertions.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub key: String,
    pub quantity: Quantity,
    /// `None` if it does not exist: for a time, never.
    pub value: Option<f64>,
}

impl Metric {
    /// Formats the value for people.
    pub fn text(&self) -> String {
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
pub fn parse_conditions(lists: &[String], known: &[Metric]) -> Result<Vec<(String, Condition)>, CliError> {
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
pub fn failures(of: &[Metric], conditions: &[(String, Condition)], whose: &str) -> Vec<String> {
    let mut failures = Vec::new();
    let not_decided = VerdictEntry::ALL.iter().position(|(_, verdict)| *verdict == VerdictEntry::NotDecided);
    let is_open = of.iter().any(|metric| metric.key == "verdict" && metric.value.map(|at| at as usize) == not_decided);
    for (key, condition) in conditions {
        let Some(metric) = of.iter().find(|metric| metric.key == *key) else { continue };
        if !condition.holds(metric.value) {
            let value = if is_open && metric.value.is_none() { "not decided".to_owned() } else { metric.text() };
            failures.push(format!("{}: {key} is {value} {whose}", condition.text));
        }
    }
    failures
}

pub fn seconds(value: f64) -> String {
    brief(Duration::try_from_secs_f64(value.max(0.0)).unwrap_or(Duration::MAX))
}

pub fn share(value: f64) -> String {
    format!("{:.1}%", 100.0 * value)
}

/// What a system does under its triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VerdictEntry {
    NeverFell,
    Recovered,
    Relapsed,
    StillDown,
    NotDecided,
}

impl VerdictEntry {
    pub const ALL: [(&'static str, Self); 5] = [
        ("never-fell", Self::NeverFell),
        ("recovered", Self::Recovered),
        ("relapsed", Self::Relapsed),
        ("still-down", Self::StillDown),
        ("not-decided", Self::NotDecided),
    ];
}

impl From<VerdictKind> for VerdictEntry {
    fn from(verdict: VerdictKind) -> Self {
        match verdict {
            VerdictKind::NeverFell => Self::NeverFell,
            VerdictKind::Recovered => Self::Recovered,
            VerdictKind::Relapsed => Self::Relapsed,
            VerdictKind::StillDown => Self::StillDown,
            _ => Self::NotDecided,
        }
    }
}
