//! What the figures of outages show: verdicts and their causes, and the thresholds of a sweep.

use stagger_sim::storm::{
    OutageReport, OutageSpec, RunFigures, ScenarioSpec, StormReport, StrategyReport, SweptPart, VerdictKind,
};
use stagger_terminal::plot::Unit;

use super::subject::name_of_curve;
use crate::report::seconds;

/// The runs of one strategy.
struct Runs<'a> {
    name: &'a str,
    spec: &'a OutageSpec,
    runs: Vec<&'a OutageReport>,
}

/// A sentence has this many names.
const MOST_NAMED: usize = 5;

/// Below this number of attempts per request, no retry was made, except perhaps for a few.
const NO_RETRIES: f64 = 1.005;

/// Returns the thresholds of a sweep, or else the verdict of each strategy, and why some are down: only as far as the
/// figures show it.
pub(super) fn conclusion(storm: &StormReport) -> Vec<String> {
    let thresholds = thresholds(storm);
    if !thresholds.is_empty() {
        return thresholds;
    }
    let strategies: Vec<Runs<'_>> = storm
        .strategies
        .iter()
        .filter_map(|row| {
            let ScenarioSpec::Outage(spec) = storm.scenario_of(row) else { return None };
            let runs = row.runs.iter().filter_map(|run| match &run.figures {
                RunFigures::Outage(report) => Some(report),
                _ => None,
            });
            Some(Runs { name: &row.name, spec, runs: runs.collect() })
        })
        .filter(|strategy| !strategy.runs.is_empty())
        .collect();
    let (alike, mixed): (Vec<_>, Vec<_>) = strategies.iter().partition(|strategy| strategy.verdict().is_some());
    let mut sentences = Vec::new();
    for verdict in VerdictKind::ALL {
        let names: Vec<String> = alike
            .iter()
            .filter(|strategy| strategy.verdict() == Some(verdict))
            .map(|strategy| strategy.detail())
            .collect();
        if !names.is_empty() {
            let names = limited(names, |others| format!("{others} others"));
            sentences.push(format!("{}: {}", heading(verdict), names.join("; ")));
        }
    }
    let mixed = mixed.iter().map(|strategy| strategy.counts()).collect();
    sentences.extend(limited(mixed, |others| format!("the verdicts of {others} others differ between seeds, too")));
    let reports = || strategies.iter().flat_map(|strategy| &strategy.runs);
    if let Some(report) = reports().next() {
        sentences.push(format!(
            "a system is down from a window of {} in which less than 90% of the requests are served in the end, until \
             five windows in a row are better",
            seconds(report.window_s)
        ));
    }
    let early = reports().filter(|report| report.down_before_outage).count();
    if early > 0 {
        sentences.push(format!("the system was down before the outage in {early} of {} runs", reports().count()));
    }
    let mut causes: Vec<String> = Vec::new();
    for cause in strategies.iter().filter_map(Runs::cause) {
        // What concerns the scenario is the same for each strategy.
        if !causes.contains(&cause) {
            causes.push(cause);
        }
    }
    sentences.extend(limited(causes, |others| format!("{others} others are down or not decided at the horizon, too")));
    sentences
}

/// Returns these items, or the first few and what `others` says about the number of the rest: the table has them all.
fn limited(mut items: Vec<String>, others: impl FnOnce(usize) -> String) -> Vec<String> {
    // An item takes no more room than "1 others".
    if items.len() > MOST_NAMED + 1 {
        let rest = items.split_off(MOST_NAMED).len();
        items.push(others(rest));
    }
    items
}

impl Runs<'_> {
    /// Returns the verdict of all runs, if they have the same.
    fn verdict(&self) -> Option<VerdictKind> {
        let first = self.runs.first()?.verdict;
        if self.runs.iter().all(|run| run.verdict == first) { Some(first) } else { None }
    }

    /// Returns the name, with the mean time that belongs to the verdict.
    fn detail(&self) -> String {
        let mean = |time: fn(&OutageReport) -> Option<f64>| {
            let times: Vec<f64> = self.runs.iter().filter_map(|run| time(run)).collect();
            seconds(times.iter().sum::<f64>() / times.len().max(1) as f64)
        };
        let name = self.name;
        match self.verdict() {
            Some(VerdictKind::Recovered) => format!("{name}, {} after the outage", mean(|run| run.recovery_s)),
            Some(VerdictKind::StillDown) => format!("{name}, since {}", mean(|run| run.fell_at_s)),
            Some(VerdictKind::Relapsed) => {
                let (at, down) = (mean(|run| run.relapsed_at_s), self.runs.iter().filter(|run| is_down(run)).count());
                let end = match down {
                    0 => "up at the horizon".to_owned(),
                    _ if down == self.runs.len() => "down at the horizon".to_owned(),
                    _ => format!("down at the horizon in {down} of {} runs", self.runs.len()),
                };
                format!("{name}, at {at}, {end}")
            }
            _ => name.to_owned(),
        }
    }

    /// Returns how many runs have each verdict.
    fn counts(&self) -> String {
        let count = |verdict| self.runs.iter().filter(|run| run.verdict == verdict).count();
        let counts =
            VerdictKind::ALL.map(|verdict| (count(verdict), verdict)).into_iter().filter(|&(count, _)| count > 0);
        let counts: Vec<String> = counts.map(|(count, verdict)| format!("{count} {}", predicate(verdict))).collect();
        format!("of {} runs of {}, {}", self.runs.len(), self.name, counts.join(", "))
    }

    /// Returns what the figures show about the runs that stay down, or are not decided, if there are any.
    fn cause(&self) -> Option<String> {
        let is_open = |run: &OutageReport| run.verdict == VerdictKind::NotDecided;
        let mut down: Vec<_> = self.runs.iter().filter(|run| is_down(run)).collect();
        if down.is_empty() {
            down = self.runs.iter().filter(|run| is_open(run)).collect();
        }
        let mean = |value: fn(&OutageReport) -> f64| down.iter().map(|run| value(run)).sum::<f64>() / down.len() as f64;
        let (first, spec) = (down.first()?, self.spec);
        let (rate, per_second) = (Unit::Count.label(spec.rate), |load: f64| Unit::Count.label(load.round()));
        let capacity = Unit::Count.label(spec.capacity);
        if spec.rate > spec.capacity {
            return Some(format!(
                "the requests alone exceed the capacity of the server, {rate}/s against {capacity}/s: no retry policy \
                 can serve them"
            ));
        }
        if spec.horizon_s < first.min_horizon_s {
            return Some(format!(
                "the horizon of {} is too short to see a recovery; raise --horizon to at least {}",
                seconds(spec.horizon_s),
                seconds(first.min_horizon_s.ceil())
            ));
        }
        let name = self.name;
        if is_open(first) {
            return Some(format!(
                "{name}: the horizon of {} is too short to decide; a longer --horizon shows whether it recovers",
                seconds(spec.horizon_s)
            ));
        }
        if mean(|run| run.amplification) < NO_RETRIES {
            return Some(format!("{name}: no retries were made, and the queue does not shrink"));
        }
        let times = mean(|run| run.final_load);
        let load = times * spec.rate;
        Some(if load > spec.capacity {
            format!(
                "{name}: {} attempts/s at the end, {times:.2} times the requests, against a capacity of {capacity}/s",
                per_second(load)
            )
        } else {
            format!(
                "{name}: {} attempts/s at the end, {times:.2} times the requests, are within the capacity of \
                 {capacity}/s, but too many of them are served too late",
                per_second(load)
            )
        })
    }
}

/// Returns whether a run is down at the horizon, and stays down.
fn is_down(run: &OutageReport) -> bool {
    run.metastable == Some(true)
}

const fn heading(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::NeverFell => "never fell",
        VerdictKind::Recovered => "recovered",
        VerdictKind::Relapsed => "relapsed",
        VerdictKind::StillDown => "still down at the horizon",
        _ => "not decided at the horizon",
    }
}

const fn predicate(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::StillDown => "are still down at the horizon",
        VerdictKind::NotDecided => "are not decided at the horizon",
        verdict => heading(verdict),
    }
}

/// Fewer values than these are no sweep that could show a threshold.
const LEAST_VALUES: usize = 3;

/// Returns a sentence for each curve of a sweep over the scenario of an outage: up to which value the system recovers,
/// and from which on it does not.
fn thresholds(storm: &StormReport) -> Vec<String> {
    let ScenarioSpec::Outage(_) = &storm.scenario else {
        return Vec::new();
    };
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for row in &storm.strategies {
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
    /// Number of runs that are not decided at the horizon.
    open: usize,
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
    /// No run is down, but at least one is not decided.
    Open,
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
        if reports.is_empty() {
            return None;
        }
        Some(Self {
            value,
            runs: reports.len(),
            open: count(|report| report.verdict == VerdictKind::NotDecided),
            down: count(is_down),
            relapsed: count(|report| !is_down(report) && report.verdict == VerdictKind::Relapsed),
            down_again: count(|report| is_down(report) && report.verdict == VerdictKind::Relapsed),
            untouched: count(|report| report.verdict == VerdictKind::NeverFell),
        })
    }

    const fn state(&self) -> State {
        match (self.down, self.open, self.relapsed) {
            (0, 0, 0) => State::Up,
            (0, 0, _) => State::Relapses,
            (0, ..) => State::Open,
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
            return Some(format!("{name} {} from {setting}={} to {}", behavior(points), first.value, last.value));
        }
        let (low, middle) = points.split_at(head);
        let (middle, high) = middle.split_at(middle.len() - tail);
        let (before, after) = (low.last()?.value, high.first()?.value);
        let text = format!("{name} {} up to {setting}={before}, and {} from {after} on", behavior(low), behavior(high));
        Some(match middle {
            [] => text,
            [only, rest @ ..] if rest.iter().all(|point| point.state() == only.state()) => {
                format!("{text}; in between it {}", behavior(middle))
            }
            _ => format!("{text}; in between it depends on the value and the seed"),
        })
    }
}

/// Returns what the system does at these points, which have one state.
fn behavior(points: &[Point<'_>]) -> String {
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
        State::Open => "is not decided within the horizon",
        // It did recover, for a while.
        State::Down if points.iter().any(|point| point.down_again > 0) => "is down at the horizon",
        State::Down => "does not recover within the horizon",
    };
    let seeds = match first.state() {
        _ if runs == 1 => return verb.to_owned(),
        State::Relapses if !all(|point| point.relapsed == point.runs) => format!("with some of {runs} seeds"),
        State::Open if !all(|point| point.open == point.runs) => format!("with some of {runs} seeds"),
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

    /// Returns the sentences for a sweep with these verdicts at the rates 1, 2, 3, …, a word for each rate with a
    /// letter for each seed: never fell (n), recovered (r), relapsed and is up (u), relapsed and is down (d), still
    /// down (s), not decided (?).
    fn sentences(verdicts: &str) -> Vec<String> {
        let scenario = OutageScenario::builder(1.0).build().unwrap();
        let mut storm = StormReport::new(&scenario);
        for (rate, runs) in (1..).zip(verdicts.split(' ')) {
            let runs = (1..).zip(runs.chars()).map(|(seed, verdict)| {
                let mut figures = OutageReport::from_figures(&OutageFigures::default());
                (figures.verdict, figures.metastable) = match verdict {
                    'n' => (VerdictKind::NeverFell, Some(false)),
                    'r' => (VerdictKind::Recovered, Some(false)),
                    'u' => (VerdictKind::Relapsed, Some(false)),
                    'd' => (VerdictKind::Relapsed, Some(true)),
                    '?' => (VerdictKind::NotDecided, None),
                    _ => (VerdictKind::StillDown, Some(true)),
                };
                (Seed::new(seed), RunFigures::Outage(figures))
            });
            let swept = [SweptSetting::new("rate", rate.to_string(), SweptPart::Scenario)];
            storm = storm
                .with_strategy(format!("ours, rate={rate}"), &Policy::DEFAULT, runs.collect::<Vec<_>>())
                .with_swept((&scenario).into(), swept);
        }
        thresholds(&storm)
    }

    #[test]
    fn the_threshold_of_a_sweep_is_named() {
        for (verdicts, want) in [
            ("r r s s", "ours recovers up to rate=2, and does not recover within the horizon from 3 on"),
            ("s r r", "ours does not recover within the horizon up to rate=1, and recovers from 2 on"),
            ("r r r", "ours recovers from rate=1 to 3"),
            ("r ? ?", "ours recovers up to rate=1, and is not decided within the horizon from 2 on"),
            ("s s s", "ours does not recover within the horizon from rate=1 to 3"),
            (
                "r s r s",
                "ours recovers up to rate=1, and does not recover within the horizon from 4 on; in between it depends \
                 on the value and the seed",
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
                "ours recovers with all 2 seeds up to rate=2, and does not recover within the horizon with any of 2 \
                 seeds from 3 on",
            ),
            (
                "nn rr rs ss",
                "ours never falls or recovers with all 2 seeds up to rate=2, and does not recover within the horizon \
                 with some of 2 seeds from 3 on",
            ),
            ("uu ru uu", "ours relapses with some of 2 seeds from rate=1 to 3"),
        ] {
            assert_eq!(sentences(verdicts), [want], "{verdicts:?}");
        }
    }
}
