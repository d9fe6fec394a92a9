//! The rows of a report and what they belong to. In a drill each policy has two rows: as it was measured, and as it was
//! simulated. The names of rows in a sweep end with the swept settings, such as `ours, base=1s, rate=100`.

use stagger_sim::storm::{StormReport, StrategyReport, SweptPart, SweptSetting};

/// A policy of a report, with the numbers of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject<'a> {
    pub name: &'a str,
    /// The row with its figures: in a drill, the measured ones.
    pub row: usize,
    /// The row with the simulation of a measured policy.
    pub simulated: Option<usize>,
}

/// Returns the policies of a document, in the order of their first rows.
pub(super) fn subjects(storm: &StormReport) -> Vec<Subject<'_>> {
    let mut subjects: Vec<Subject<'_>> = Vec::new();
    for (at, row) in storm.strategies.iter().enumerate() {
        if let (Some(last), Some(base)) = (subjects.last_mut(), row.name.strip_suffix(SIMULATED))
            && (last.row + 1 == at && last.name == base && is_measured(&storm.strategies[last.row]))
        {
            last.simulated = Some(at);
            continue;
        }
        subjects.push(Subject { name: policy_name(row), row: at, simulated: None });
    }
    subjects
}

/// Returns the name of the policy of a row, which a measured row has with an addition.
pub(super) fn policy_name(row: &StrategyReport) -> &str {
    match row.name.strip_suffix(MEASURED) {
        Some(name) if is_measured(row) => name,
        _ => &row.name,
    }
}

/// Returns whether a row has figures of a real run.
pub(super) fn is_measured(row: &StrategyReport) -> bool {
    row.runs.iter().any(|run| run.measured.is_some())
}

const MEASURED: &str = ", measured";
const SIMULATED: &str = ", simulated";

/// Returns the name of a row without the swept settings of its scenario: all rows of that name have one policy.
pub(super) fn name_of_policy(row: &StrategyReport) -> String {
    let mut name = without(row, row.swept.len()).to_owned();
    for swept in row.swept.iter().filter(|swept| swept.of == SweptPart::Policy) {
        name.push_str(&label(swept));
    }
    name
}

/// Returns the name of a row without the setting of the last sweep: these rows form a curve.
pub(super) fn name_of_curve(row: &StrategyReport) -> &str {
    without(row, row.swept.len().min(1))
}

/// Returns the name of a row without its last `count` swept settings.
fn without(row: &StrategyReport, count: usize) -> &str {
    let mut last = row.swept.iter().rev().take(count);
    let shorter = last.try_fold(&*row.name, |name, swept| name.strip_suffix(&*label(swept)));
    // The name of a duplicate ends with a number.
    shorter.unwrap_or(&row.name)
}

/// Returns the swept settings of the scenario of a row: rows with the same label have the same scenario.
pub(super) fn scenario_label(row: &StrategyReport) -> String {
    row.swept.iter().filter(|swept| swept.of == SweptPart::Scenario).map(label).collect()
}

fn label(SweptSetting { setting, value, .. }: &SweptSetting) -> String {
    format!(", {setting}={value}")
}

#[cfg(test)]
mod tests {
    use stagger_core::{Policy, Seed};
    use stagger_sim::reconnect::ReconnectScenario;
    use stagger_sim::storm::Measurements;

    use super::*;

    #[test]
    fn a_measured_row_and_the_simulation_after_it_are_one_policy() {
        let scenario = ReconnectScenario::builder(1).build().unwrap();
        let run = scenario.run(&Policy::DEFAULT, Seed::new(1));
        let add = |storm: StormReport, name: &str| storm.with_strategy(name, &Policy::DEFAULT, [(Seed::new(1), &run)]);
        let mut storm = StormReport::new(&scenario);
        for name in ["one", "two"] {
            storm = add(storm, &format!("{name}, measured")).with_measurements(Measurements::default());
            storm = add(storm, &format!("{name}, simulated"));
        }
        // A policy that has such a name by chance.
        storm = add(storm, "three, simulated");
        let found: Vec<_> = subjects(&storm).iter().map(|one| (one.name, one.row, one.simulated)).collect();
        assert_eq!(found, [("one", 0, Some(1)), ("two", 2, Some(3)), ("three, simulated", 4, None)]);
    }
}
