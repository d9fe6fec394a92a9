use stagger_sim::storm::{ScenarioSpec, StormReport, StrategyReport, SweptPart};

use super::results::Results;
use super::swept::name_of_curve;

/// Fewer values than these are no sweep that could show a threshold.
const LEAST_VALUES: usize = 3;

/// Returns a sentence for each curve of a sweep over the scenario of an outage: up to which value the system recovers,
/// and from which on it does not.
pub(crate) fn thresholds(storm: &StormReport, results: &Results<'_>) -> Vec<String> {
    let (ScenarioSpec::Outage(_), Some(metric)) = (&storm.scenario, results.metric("metastable")) else {
        return Vec::new();
    };
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for (row, cell) in results.rows.iter().zip(results.column(metric)) {
        let Some(swept) = row.swept.last().filter(|swept| swept.of == SweptPart::Scenario) else {
            return Vec::new();
        };
        let point = Point { row, value: &swept.value, is_down: cell.value.unwrap_or(1.0) > 0.0 };
        let name = name_of_curve(row);
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { name, setting: &swept.setting, points: vec![point] }),
        }
    }
    curves.iter().filter(|curve| curve.points.len() >= LEAST_VALUES).map(Curve::sentence).collect()
}

/// The rows of a sweep that differ only in the last setting.
struct Curve<'a> {
    name: &'a str,
    setting: &'a str,
    points: Vec<Point<'a>>,
}

struct Point<'a> {
    row: &'a StrategyReport,
    value: &'a str,
    /// Whether the system did not recover with at least one seed.
    is_down: bool,
}

impl Curve<'_> {
    fn sentence(&self) -> String {
        let Self { name, setting, points } = self;
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return String::new();
        };
        let runs = first.row.runs.len();
        let state = |point: &Point<'_>| match (point.is_down, runs) {
            (true, _) => "does not recover".to_owned(),
            (false, 0 | 1) => "recovers".to_owned(),
            (false, runs) => format!("recovers with all {runs} seeds"),
        };
        // How many values at each end have the state of that end.
        let head = points.iter().take_while(|point| point.is_down == first.is_down).count();
        let tail = points.iter().rev().take_while(|point| point.is_down == last.is_down).count();
        if head == points.len() {
            return format!("{name} {} from {setting}={} to {}", state(first), first.value, last.value);
        }
        let (low, high) = (points[head - 1].value, points[points.len() - tail].value);
        let (low_state, high_state) = (state(first), state(last));
        let text = format!("{name} {low_state} up to {setting}={low}, and {high_state} from {high} on");
        if head + tail == points.len() {
            return text;
        }
        format!("{text}; in between it depends on the value and the seed")
    }
}

#[cfg(test)]
mod tests {
    use stagger_core::{Policy, Seed};
    use stagger_sim::outage::{OutageFigures, OutageScenario};
    use stagger_sim::storm::{OutageReport, RunFigures, SweptSetting};

    use super::*;

    /// Returns the sentences for a sweep with these outcomes at the rates 1, 2, 3, ….
    fn sentences(outcomes: &[bool]) -> Vec<String> {
        let scenario = OutageScenario::builder(1.0).build().unwrap();
        let mut storm = StormReport::new(&scenario);
        for (rate, &is_down) in (1..).zip(outcomes) {
            let mut figures = OutageReport::from_figures(&OutageFigures::default());
            figures.metastable = is_down;
            let swept = [SweptSetting::new("rate", rate.to_string(), SweptPart::Scenario)];
            storm = storm
                .with_strategy(
                    format!("ours, rate={rate}"),
                    &Policy::DEFAULT,
                    [(Seed::new(1), RunFigures::Outage(figures))],
                )
                .with_swept((&scenario).into(), swept);
        }
        thresholds(&storm, &Results::from_storm(&storm))
    }

    #[test]
    fn the_threshold_of_a_sweep_is_named() {
        for (outcomes, want) in [
            (&[false, false, true, true][..], "ours recovers up to rate=2, and does not recover from 3 on"),
            (&[true, false, false], "ours does not recover up to rate=1, and recovers from 2 on"),
            (&[false, false, false], "ours recovers from rate=1 to 3"),
            (&[true, true, true], "ours does not recover from rate=1 to 3"),
            (
                &[false, true, false, true],
                "ours recovers up to rate=1, and does not recover from 4 on; in between it depends on the value and the \
                 seed",
            ),
            (
                &[false, true, false],
                "ours recovers up to rate=1, and recovers from 3 on; in between it depends on the value and the seed",
            ),
        ] {
            assert_eq!(sentences(outcomes), [want], "{outcomes:?}");
        }
        assert!(sentences(&[false, true]).is_empty(), "two values are no sweep");
    }
}
