//! Names of rows in a sweep. They end with the swept settings, such as `ours, base=1s, rate=100`.

use stagger_sim::storm::{StrategyReport, SweptPart, SweptSetting};

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
