use stagger_sim::storm::{OutageReport, RunFigures, ScenarioSpec, StormReport, StrategyReport, SweptPart, VerdictKind};

use super::results::Results;
use super::swept::name_of_curve;

/// Fewer values than these are no sweep that could show a threshold.
const LEAST_VALUES: usize = 3;

/// Returns a sentence for each curve of a sweep over the scenario of an outage: up to which value the system recovers,
/// and from which on it does not.
pub(super) fn thresholds(storm: &StormReport, results: &Results<'_>) -> Vec<String> {
    let ScenarioSpec::Outage(_) = &storm.scenario else {
        return Vec::new();
    };
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for row in &results.rows {
        let Some(swept) = row.swept.last().filter(|swept| swept.of == SweptPart::Scenario) else {
            return Vec::new();
        };
        let Some(point) = Point::new(row, &swept.value) else {
            return Vec::new();
        };
        let name = name_of_curve(row);
        match curves.iter_mut().find(|curve| curve.name == name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { name, setting: &swept.setting, points: vec![point] }),
        }
    }
    curves.iter().filter(|curve| curve.points.len() >= LEAST_VALUES).filter_map(Curve::sentence).collect()
}

/// The rows of a sweep that differ only in the last setting.
struct Curve<'a> {
    name: &'a str,
    setting: &'a str,
    points: Vec<Point<'a>>,
}

/// The runs with one value of the setting.
struct Point<'a> {
    value: &'a str,
    runs: usize,
    /// Number of runs that are down at the horizon.
    down: usize,
    /// Number of runs that are up at the horizon, but were down more than once.
    relapsed: usize,
    /// Number of runs that are down at the horizon after they were up again.
    down_again: usize,
    /// Number of runs that were never down.
    untouched: usize,
}

/// What the runs of a point have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Every run is up, and was down once at most.
    Up,
    /// Every run is up, but at least one was down more than once.
    Relapses,
    /// At least one run is down.
    Down,
}

impl<'a> Point<'a> {
    /// Returns the runs of a row; `None` if it has none.
    fn new(row: &'a StrategyReport, value: &'a str) -> Option<Self> {
        let reports: Vec<&OutageReport> = row
            .runs
            .iter()
            .filter_map(|run| if let RunFigures::Outage(report) = &run.figures { Some(report) } else { None })
            .collect();
        let count = |is: fn(&OutageReport) -> bool| reports.iter().filter(|report| is(report)).count();
        (!reports.is_empty()).then_some(Self {
            value,
            runs: reports.len(),
            down: count(|report| report.metastable),
            relapsed: count(|report| !report.metastable && report.verdict == VerdictKind::Relapsed),
            down_again: count(|report| report.metastable && report.verdict == VerdictKind::Relapsed),
            untouched: count(|report| !report.metastable && report.verdict == VerdictKind::NeverFell),
        })
    }

    const fn state(&self) -> State {
        match (self.down, self.relapsed) {
            (0, 0) => State::Up,
            (0, _) => State::Relapses,
            _ => State::Down,
        }
    }
}

impl Curve<'_> {
    fn sentence(&self) -> Option<String> {
        let Self { name, setting, points } = self;
        let (first, last) = (points.first()?, points.last()?);
        // How many values at each end have the state of that end.
        let head = points.iter().take_while(|point| point.state() == first.state()).count();
        let tail = points.iter().rev().take_while(|point| point.state() == last.state()).count();
        if head == points.len() {
            return Some(format!("{name} {} from {setting}={} to {}", predicate(points), first.value, last.value));
        }
        let (low, middle) = points.split_at(head);
        let (middle, high) = middle.split_at(middle.len() - tail);
        let (before, after) = (low.last()?.value, high.first()?.value);
        let text =
            format!("{name} {} up to {setting}={before}, and {} from {after} on", predicate(low), predicate(high));
        Some(match middle {
            [] => text,
            [only, rest @ ..] if rest.iter().all(|point| point.state() == only.state()) => {
                format!("{text}; in between it {}", predicate(middle))
            }
            _ => format!("{text}; in between it depends on the value and the seed"),
        })
    }
}

/// Returns what the system does at these points, which have one state.
fn predicate(points: &[Point<'_>]) -> String {
    let [first, ..] = points else {
        return String::new();
    };
    let runs = first.runs;
    let all = |is: fn(&Point<'_>) -> bool| points.iter().all(is);
    let verb = match first.state() {
        State::Up if all(|point| point.untouched == point.runs) => "never falls",
        State::Up if points.iter().any(|point| point.untouched > 0) => "never falls or recovers",
        State::Up => "recovers",
        State::Relapses => "relapses",
        // It did recover, for a while.
        State::Down if points.iter().any(|point| point.down_again > 0) => "is down at the horizon",
        State::Down => "does not recover within the horizon",
    };
    let seeds = match first.state() {
        _ if runs == 1 => return verb.to_owned(),
        State::Relapses if !all(|point| point.relapsed == point.runs) => format!("with some of {runs} seeds"),
        State::Down if !all(|point| point.down == point.runs) => format!("with some of {runs} seeds"),
        State::Down if verb == "does not recover within the horizon" => format!("with any of {runs} seeds"),
        _ => format!("with all {runs} seeds"),
    };
    format!("{verb} {seeds}")
}

#[cfg(test)]
mod tests {
    use stagger_core::{Policy, Seed};
    use stagger_sim::outage::{OutageFigures, OutageScenario};
    use stagger_sim::storm::SweptSetting;

    use super::*;

    /// Returns the sentences for a sweep with these verdicts at the rates 1, 2, 3, …, a word for each rate with a letter
    /// for each seed: never fell (n), recovered (r), relapsed and is up (u), relapsed and is down (d), still down (s).
    fn sentences(verdicts: &str) -> Vec<String> {
        let scenario = OutageScenario::builder(1.0).build().unwrap();
        let mut storm = StormReport::new(&scenario);
        for (rate, runs) in (1..).zip(verdicts.split(' ')) {
            let runs = (1..).zip(runs.chars()).map(|(seed, verdict)| {
                let mut figures = OutageReport::from_figures(&OutageFigures::default());
                (figures.verdict, figures.metastable) = match verdict {
                    'n' => (VerdictKind::NeverFell, false),
                    'r' => (VerdictKind::Recovered, false),
                    'u' => (VerdictKind::Relapsed, false),
                    'd' => (VerdictKind::Relapsed, true),
                    _ => (VerdictKind::StillDown, true),
                };
                (Seed::new(seed), RunFigures::Outage(figures))
            });
            let swept = [SweptSetting::new("rate", rate.to_string(), SweptPart::Scenario)];
            storm = storm
                .with_strategy(format!("ours, rate={rate}"), &Policy::DEFAULT, runs.collect::<Vec<_>>())
                .with_swept((&scenario).into(), swept);
        }
        thresholds(&storm, &Results::from_storm(&storm))
    }

    #[test]
    fn the_threshold_of_a_sweep_is_named() {
        for (verdicts, want) in [
            ("r r s s", "ours recovers up to rate=2, and does not recover within the horizon from 3 on"),
            ("s r r", "ours does not recover within the horizon up to rate=1, and recovers from 2 on"),
            ("r r r", "ours recovers from rate=1 to 3"),
            ("s s s", "ours does not recover within the horizon from rate=1 to 3"),
            (
                "r s r s",
                "ours recovers up to rate=1, and does not recover within the horizon from 4 on; in between it depends on the value and the \
                 seed",
            ),
            (
                "r s r",
                "ours recovers up to rate=1, and recovers from 3 on; in between it does not recover within the horizon",
            ),
        ] {
            assert_eq!(sentences(verdicts), [want], "{verdicts:?}");
        }
        assert!(sentences("r s").is_empty(), "two values are no sweep");
    }

    #[test]
    fn a_system_that_relapses_or_never_falls_is_not_said_to_recover() {
        for (verdicts, want) in [
            ("u u u", "ours relapses from rate=1 to 3"),
            (
                "r u s",
                "ours recovers up to rate=1, and does not recover within the horizon from 3 on; in between it relapses",
            ),
            ("n n s", "ours never falls up to rate=2, and does not recover within the horizon from 3 on"),
            ("n n d", "ours never falls up to rate=2, and is down at the horizon from 3 on"),
            ("n r s", "ours never falls or recovers up to rate=2, and does not recover within the horizon from 3 on"),
        ] {
            assert_eq!(sentences(verdicts), [want], "{verdicts:?}");
        }
    }

    #[test]
    fn the_number_of_seeds_is_said_with_the_state() {
        for (verdicts, want) in [
            (
                "rr rr ss",
                "ours recovers with all 2 seeds up to rate=2, and does not recover within the horizon with any of 2 seeds from 3 on",
            ),
            (
                "nn rr rs ss",
                "ours never falls or recovers with all 2 seeds up to rate=2, and does not recover within the horizon with some of 2 \
             seeds from 3 on",
            ),
            ("uu ru uu", "ours relapses with some of 2 seeds from rate=1 to 3"),
        ] {
            assert_eq!(sentences(verdicts), [want], "{verdicts:?}");
        }
    }
}
