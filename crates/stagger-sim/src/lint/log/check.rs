use core::time::Duration;
use std::collections::{BTreeMap, HashMap};

use stagger_core::Policy;

use super::entry::{Log, LogEntry};
use super::error::printable;
use super::statistics::{busiest, clustered, resultant};
use crate::lint::analysis::{brief, from_to, percent};
use crate::lint::rules::{BEYOND_BOUNDS, ENDLESS_RETRIES, IN_STEP, POLICY_MISMATCH, SYNCHRONIZED};
use crate::lint::{Finding, GoodnessOfFit, QuantileCurve};

/// What is to be found in delays that have happened, in the order of the rules' codes. A policy that they should have
/// been drawn from makes more of it: without one there is no telling whether they lie where they should.
#[must_use]
pub fn check(log: &Log, policy: Option<&Policy>) -> Vec<Finding> {
    let groups = groups(log);
    [
        in_step(&groups),
        policy.and_then(|policy| beyond_bounds(log, policy)),
        synchronized(log),
        endless_retries(log, policy),
        policy.and_then(|policy| policy_mismatch(&groups, policy)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The delays before each retry, sorted; under `None` those of which it is not known.
type Groups = BTreeMap<Option<u32>, Vec<Duration>>;

fn groups(log: &Log) -> Groups {
    let mut groups = Groups::new();
    for entry in &log.entries {
        groups.entry(entry.retry).or_default().push(entry.delay);
    }
    groups.values_mut().for_each(|delays| delays.sort_unstable());
    groups
}

fn before(retry: Option<u32>) -> String {
    retry.map_or("of all delays".to_owned(), |retry| format!("before retry {retry}"))
}

/// Fewer delays than this say nothing about jitter, and fewer clients nothing about phases.
const FEWEST: usize = 8;
/// Which share of delays in clusters is a sign that there is no jitter.
const CLUSTERED: f64 = 0.5;

fn in_step(groups: &Groups) -> Option<Finding> {
    let facts: Vec<String> = groups
        .iter()
        .filter(|(_, delays)| delays.len() >= FEWEST && delays.last() > Some(&Duration::ZERO))
        .filter_map(|(retry, delays)| {
            let (share, most) = clustered(delays);
            (share >= CLUSTERED).then(|| {
                let many = delays.len();
                format!(
                    "{}: {} of {many} are equal to others; most often {}",
                    before(*retry),
                    percent(share),
                    brief(most)
                )
            })
        })
        .collect();
    let advice = "jitter=full in the policy that made them, capped before the draw and not after it";
    (!facts.is_empty()).then(|| Finding::of_log(&IN_STEP, facts, advice))
}

/// How much longer or shorter a delay may have been measured.
const MEASURED: Duration = Duration::from_millis(1);
/// How many retries there are to look at where it is not known which one it was.
const RETRIES: u32 = 64;

fn beyond_bounds(log: &Log, policy: &Policy) -> Option<Finding> {
    let mut known: HashMap<Option<u32>, Option<(Duration, Duration)>> = HashMap::new();
    let mut bounds = |retry: Option<u32>| *known.entry(retry).or_insert_with(|| bounds_of(policy, retry));
    let outside: Vec<(&LogEntry, Option<(Duration, Duration)>)> = log
        .entries
        .iter()
        .filter_map(|entry| match bounds(entry.retry) {
            Some((least, most))
                if entry.delay.saturating_add(MEASURED) >= least && entry.delay <= most.saturating_add(MEASURED) =>
            {
                None
            }
            bounds => Some((entry, bounds)),
        })
        .collect();
    let (first, bounds) = outside.first()?;
    let could = bounds.map_or("no delay".to_owned(), from_to);
    let facts = vec![
        format!("{} of {} delays", outside.len(), log.entries.len()),
        format!("line {}: {} {}; the policy has {could}", first.line, brief(first.delay), before(first.retry)),
    ];
    Some(Finding::of_log(&BEYOND_BOUNDS, facts, "compare the policy that runs with this one, and look for hints"))
}

fn bounds_of(policy: &Policy, retry: Option<u32>) -> Option<(Duration, Duration)> {
    match retry {
        Some(retry) => policy.bounds(retry),
        None => (1..=RETRIES)
            .map_while(|n| policy.bounds(n))
            .reduce(|(least, most), (lo, hi)| (least.min(lo), most.max(hi))),
    }
}

/// From which length of the mean phase on clients count as synchronised, and how improbable that must be otherwise.
const IN_PHASE: f64 = 0.7;
const CHANCE: f64 = 0.001;

fn synchronized(log: &Log) -> Option<Finding> {
    let mut last: HashMap<&str, (Duration, Duration)> = HashMap::new();
    for entry in &log.entries {
        let (Some(client), Some(time)) = (entry.client.as_deref(), entry.time) else { continue };
        let latest = last.entry(client).or_insert((time, entry.delay));
        if time >= latest.0 {
            *latest = (time, entry.delay);
        }
    }
    let (mut times, mut delays): (Vec<Duration>, Vec<Duration>) = last.into_values().unzip();
    times.sort_unstable();
    delays.sort_unstable();
    let period = delays.get(delays.len() / 2).copied().filter(|period| !period.is_zero())?;
    let (clients, length) = (times.len() as f64, resultant(&times, period));
    if times.len() < FEWEST || length < IN_PHASE || (-clients * length * length).exp() > CHANCE {
        return None;
    }
    let mut arrivals: Vec<Duration> = log.entries.iter().filter_map(|entry| entry.time).collect();
    arrivals.sort_unstable();
    let facts = vec![
        format!("{} clients, period {}: their phases agree by {length:.2} of 1", times.len(), brief(period)),
        format!("the busiest 100 ms have {} of {} arrivals", busiest(&arrivals), arrivals.len()),
    ];
    Some(Finding::of_log(&SYNCHRONIZED, facts, "jitter=full, and a spread before the first retry"))
}

/// So many retries of one call are too many where no policy says so.
const ENDLESS: u32 = 50;

fn endless_retries(log: &Log, policy: Option<&Policy>) -> Option<Finding> {
    let limit = policy.and_then(Policy::max_attempts).map(|attempts| attempts.get() - 1);
    let most = limit.unwrap_or(ENDLESS - 1);
    let longest = log.entries.iter().filter(|entry| entry.retry > Some(most)).max_by_key(|entry| entry.retry)?;
    let client = longest.client.as_deref().map_or(String::new(), |client| format!(" of {}", printable(client)));
    let retry = longest.retry.unwrap_or(0);
    let allowed = limit.map_or(String::new(), |limit| format!("; the policy allows {limit}"));
    let facts = vec![format!("line {}: retry {retry}{client}{allowed}", longest.line)];
    Some(Finding::of_log(&ENDLESS_RETRIES, facts, "max-attempts, or max-elapsed, in the policy that made them"))
}

/// Fewer delays than this say nothing about a distribution.
const FEWEST_DRAWS: usize = 20;
/// How often logs of the policy itself may be called wrong, over all retries together.
const FALSE_ALARM: f64 = 0.001;

fn policy_mismatch(groups: &Groups, policy: &Policy) -> Option<Finding> {
    let fits: Vec<(u32, usize, GoodnessOfFit)> = groups
        .iter()
        .filter(|(_, delays)| delays.len() >= FEWEST_DRAWS)
        .filter_map(|(retry, delays)| {
            let retry = (*retry)?;
            let bounds = policy.bounds(retry).filter(|(least, most)| least < most)?;
            let curve = QuantileCurve::new(|shares| policy.quantiles(retry, shares))?;
            Some((retry, delays.len(), GoodnessOfFit::new(&curve, bounds, delays)))
        })
        .collect();
    let threshold = FALSE_ALARM / (2 * fits.len()).max(1) as f64;
    let facts: Vec<String> = fits
        .iter()
        .filter(|(_, _, fit)| fit.is_rejected(threshold))
        .map(|(retry, many, fit)| {
            let p = fit.p_value.min(fit.p_ends);
            format!(
                "before retry {retry}: {many} delays, {:.2} from the policy's distribution (p {p:.1e})",
                fit.distance
            )
        })
        .collect();
    let advice = "compare the policy that runs with this one: base, multiplier, jitter and cap";
    (!facts.is_empty()).then(|| Finding::of_log(&POLICY_MISMATCH, facts, advice))
}
