//! The policies of a report. In a drill each has two rows: as it was measured, and as it was simulated.

use stagger_sim::storm::{StormReport, StrategyReport};

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
    row.name.strip_suffix(MEASURED).filter(|_| is_measured(row)).unwrap_or(&row.name)
}

/// Returns whether a row has figures of a real run.
pub(super) fn is_measured(row: &StrategyReport) -> bool {
    row.runs.iter().any(|run| run.measured.is_some())
}

const MEASURED: &str = ", measured";
const SIMULATED: &str = ", simulated";

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
