use core::time::Duration;

use stagger_sim::storm::{OutageReport, OutageSpec, RunFigures, ScenarioSpec, StormReport, VerdictKind};

use super::results::Results;
use super::threshold::thresholds;
use stagger_terminal::plan::brief;
use stagger_terminal::plot::Unit;

/// The runs of one strategy.
struct Runs<'a> {
    name: &'a str,
    spec: &'a OutageSpec,
    runs: Vec<&'a OutageReport>,
}

/// Verdicts in the order of the conclusion.
const VERDICTS: [VerdictKind; 4] =
    [VerdictKind::NeverFell, VerdictKind::Recovered, VerdictKind::Relapsed, VerdictKind::StillDown];

/// A sentence has this many names.
const MOST_NAMED: usize = 5;

/// Below this number of attempts per request, no retry was made, except perhaps for a few.
const NO_RETRIES: f64 = 1.005;

/// Returns the thresholds of a sweep, or else the verdict of each strategy, and why some are down: only as far as the
/// figures show it.
pub(super) fn conclusion(storm: &StormReport, results: &Results<'_>) -> Vec<String> {
    let thresholds = thresholds(storm, results);
    if !thresholds.is_empty() {
        return thresholds;
    }
    let strategies: Vec<Runs<'_>> = results
        .rows
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
    for verdict in VERDICTS {
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
    sentences.extend(limited(causes, |others| format!("{others} others are down at the horizon, too")));
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
        self.runs.iter().all(|run| run.verdict == first).then_some(first)
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
                let (at, down) = (mean(|run| run.relapsed_at_s), self.runs.iter().filter(|run| run.metastable).count());
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
        let counts = VERDICTS.map(|verdict| (count(verdict), verdict)).into_iter().filter(|&(count, _)| count > 0);
        let counts: Vec<String> = counts.map(|(count, verdict)| format!("{count} {}", predicate(verdict))).collect();
        format!("of {} runs of {}, {}", self.runs.len(), self.name, counts.join(", "))
    }

    /// Returns what the figures show about the runs that are down at the horizon, if there are any.
    fn cause(&self) -> Option<String> {
        let down: Vec<_> = self.runs.iter().filter(|run| run.metastable).collect();
        let mean = |value: fn(&OutageReport) -> f64| down.iter().map(|run| value(run)).sum::<f64>() / down.len() as f64;
        let (first, spec) = (down.first()?, self.spec);
        let (rate, per_second) = (Unit::Count.label(spec.rate), |load: f64| Unit::Count.label(load.round()));
        let capacity = Unit::Count.label(spec.capacity);
        if spec.rate > spec.capacity {
            return Some(format!(
                "the requests alone exceed the capacity of the server, {rate}/s against {capacity}/s: no retry policy can \
                 serve them"
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
        if mean(|run| run.amplification) < NO_RETRIES {
            return Some(format!("{name}: no retries were made; a longer --horizon shows whether the queue drains"));
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
                "{name}: {} attempts/s at the end, {times:.2} times the requests, are within the capacity of {capacity}/s; a \
                 longer --horizon shows whether the system recovers",
                per_second(load)
            )
        })
    }
}

const fn heading(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::NeverFell => "never fell",
        VerdictKind::Recovered => "recovered",
        VerdictKind::Relapsed => "relapsed",
        _ => "still down at the horizon",
    }
}

const fn predicate(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::StillDown => "are still down at the horizon",
        verdict => heading(verdict),
    }
}

fn seconds(seconds: f64) -> String {
    brief(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}
