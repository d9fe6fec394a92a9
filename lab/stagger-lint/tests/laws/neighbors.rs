//! `stagger advise`: no policy that differs in a step or two is better than the recommended one, after outages of other
//! lengths than it was judged on.

use core::time::Duration;

use stagger::{Jitter, Policy, Ratio, Seed};
use stagger_core::schedule::Backoff;
use stagger_lint::advise::Advice;
use stagger_sim::reconnect::ReconnectScenario;

use super::advise::{Asked, Figures, NEVER, figures, length, mean, over_all};
use super::draws::Draws;
use super::law::{Law, Verdict};

/// The recommended policy is the best of those around it, and not only after the outages that it was chosen for.
pub(crate) const NEIGHBORS: Law = Law {
    name: "neighbors",
    statement: "none of 90 neighbors of what `advise` recommends is better, by its own measure, after outages of \
                lengths that it was not given",
    share: 5,
    case,
};

/// Number of neighbors, and of draws of two steps, of which some are not valid or answer another question.
const NEIGHBORS_TRIED: usize = 90;
const MAX_DRAWS: usize = 20 * NEIGHBORS_TRIED;

/// Number of lengths in each distance between two that were given, and beyond the longest.
const LENGTHS: usize = 12;

/// Number of runs with which neighbors that come near are compared, and of others that must confirm a difference: the
/// best of 90 had some luck.
const RUNS: u64 = 8;
const MORE_RUNS: u64 = 64;

/// What counts as better: a lower measure, which is a sum of logarithms, by so much, or so much more served.
const BETTER: f64 = 0.1;
const SERVED: f64 = 0.02;

/// The measure of `advise`, which `choosing.md` describes: the weight of attempts, and of what only breaks ties.
const ATTEMPTS: f64 = 0.5;
const TIE: f64 = 0.01;
/// Shares of served clients that differ by no more do not decide.
const SIMILAR: f64 = 0.005;

/// Factors of a step.
const STEPS: [f64; 8] = [0.5, 0.7, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0];
const JITTERS: [u32; 7] = [5, 10, 20, 35, 50, 70, 90];

fn case(seed: Seed) -> Verdict {
    let mut draws = Draws::new(seed);
    let asked = Asked::random(&mut draws);
    // Small fleets: the measure is that of large ones, and a case takes seconds.
    let clients = draws.between(50.0, 400.0).round();
    let asked = Asked { clients: clients as u64, rate: asked.rate * clients / asked.clients as f64, ..asked };
    examine(&asked, &mut draws).unwrap_or_else(Verdict::Broken)
}

fn examine(asked: &Asked, draws: &mut Draws) -> Result<Verdict, String> {
    if asked.is_too_late() {
        return Ok(Verdict::Silent("the outage is as long as the time that a call has, so that no policy serves any"));
    }
    let advice = asked.advice(draws.seed())?;
    let front = advice.front().ok_or_else(|| format!("{asked:?}: no policy was simulated"))?;
    let ours = front.best().policy;
    let scenarios = other_lengths(asked, &front.outages, draws)?;
    let seeds: Vec<Seed> = (0..RUNS).map(|_| draws.seed()).collect();
    let of = |policy: &Policy, seeds: &[Seed]| -> Figures {
        let each: Vec<Vec<Figures>> = seeds.iter().map(|seed| figures(&scenarios, policy, *seed)).collect();
        let by_length: Vec<Figures> = (0..scenarios.len())
            .map(|at| {
                let mut runs: Vec<Figures> = each.iter().map(|run| run[at]).collect();
                let [peak, _, attempts, lost] = mean(&runs);
                // In one run of dozens, a client or two are missing from the 99 %.
                runs.sort_by(|one, other| one[1].total_cmp(&other[1]));
                runs.truncate(runs.len() - runs.len() / 32);
                [peak, mean(&runs)[1], attempts, lost]
            })
            .collect();
        over_all(&by_length, by_length.len())
    };
    let own = of(&ours, &seeds);
    let neighbors = neighbors(asked, &ours, draws);
    for neighbor in &neighbors {
        // One run leaves out most of them.
        if is_beaten(asked, &own, &of(neighbor, &seeds[..1]), 0.0)
            && is_beaten(asked, &own, &of(neighbor, &seeds), BETTER)
        {
            let others: Vec<Seed> = (0..MORE_RUNS).map(|_| draws.seed()).collect();
            let (own, theirs) = (of(&ours, &others), of(neighbor, &others));
            if is_beaten(asked, &own, &theirs, BETTER) {
                return Err(format!("{asked:?}: {neighbor} has {theirs:?}, {ours} has {own:?}"));
            }
        }
    }
    if neighbors.len() < NEIGHBORS_TRIED {
        return Ok(Verdict::Silent("hardly any policy fits the patience and the minimum delay"));
    }
    Ok(Verdict::Held(kind(asked, &advice)))
}

/// Returns what the law found, by the kind of the question.
fn kind(asked: &Asked, advice: &Advice) -> &'static str {
    let served = advice.front().map_or(0.0, |front| front.best().predicted.recovered_ratio);
    match (asked.call(), served >= 0.995) {
        (None, _) if asked.is_connection() => "no neighbor is better for connections",
        (None, _) => "no neighbor is better for jobs",
        (Some(_), true) => "no neighbor is better for calls",
        (Some(_), false) => "no neighbor is better for calls that cannot all be served",
    }
}

/// Returns outages of other lengths than these, evenly from the shortest to the longest; none if there is only one.
fn other_lengths(asked: &Asked, judged: &[Duration], draws: &mut Draws) -> Result<Vec<ReconnectScenario>, String> {
    let mut lengths = Vec::new();
    let (Some(first), Some(last)) = (judged.first(), judged.last()) else { return Err("no outage".to_owned()) };
    if first == last {
        lengths.push(*first);
    }
    for pair in judged.windows(2) {
        let count = (LENGTHS / (judged.len() - 1)).max(3);
        let width = (pair[1] - pair[0]).as_secs_f64() / count as f64;
        for nth in 0..count {
            lengths.push(pair[0] + Duration::from_secs_f64(width * (nth as f64 + 0.05 + 0.9 * draws.share())));
        }
    }
    lengths.into_iter().map(|outage| asked.scenario(outage)).collect()
}

/// Returns whether a neighbor is better by more than this.
fn is_beaten(asked: &Asked, own: &Figures, theirs: &Figures, margin: f64) -> bool {
    let (lost, others_lost) = (own[3], theirs[3]);
    let served = if margin > 0.0 { SERVED } else { 0.0 };
    if lost > others_lost + SIMILAR + served {
        return true;
    }
    others_lost <= lost + SIMILAR && measure(asked, theirs) < measure(asked, own) - margin
}

/// Returns the sum of the logarithms of overload, recovery and attempts.
fn measure(asked: &Asked, figures: &Figures) -> f64 {
    let [peak, recovery, attempts, lost] = *figures;
    let deadline = asked.deadline.filter(|_| asked.is_connection()).map_or(0.0, |deadline| deadline.as_secs_f64());
    // A twentieth over the deadline is in time: other lengths have other recoveries.
    let weight = if recovery <= 1.05 * deadline { TIE } else { 1.0 };
    let recovery = recovery.clamp(1e-3, NEVER).ln() * weight;
    (peak / asked.rate).max(1.0).ln() + TIE * peak.max(1e-3).ln() + recovery + ATTEMPTS * attempts.ln() + lost
}

/// Returns policies that differ in one setting, or in two, and answer the same question.
fn neighbors(asked: &Asked, policy: &Policy, draws: &mut Draws) -> Vec<Policy> {
    let single = moved(policy);
    let mut found: Vec<Policy> = Vec::new();
    let mut add = |candidate: Policy| {
        if candidate != *policy && !found.contains(&candidate) && answers(asked, &candidate) {
            found.push(candidate);
        }
        found.len() >= NEIGHBORS_TRIED
    };
    for candidate in &single {
        if add(*candidate) {
            break;
        }
    }
    for _ in 0..MAX_DRAWS {
        let Some(two) = draws.one_of(&single).and_then(|one| draws.one_of(&moved(&one))) else { break };
        if add(two) {
            break;
        }
    }
    found
}

/// Returns the policies that differ in one setting.
fn moved(policy: &Policy) -> Vec<Policy> {
    let scaled = |value: Duration, by: f64| length(value.as_secs_f64() * by);
    let mut moved = Vec::new();
    for by in STEPS {
        let (base, spread) = (scaled(policy.base(), by), scaled(policy.spread(), by));
        moved.push(policy.to_builder().base(base));
        if let Some(cap) = policy.cap() {
            moved.push(policy.to_builder().cap(scaled(cap, by)));
            moved.push(policy.to_builder().base(base).cap(scaled(cap, by)));
        }
        if let Backoff::Exponential { multiplier, .. } = policy.backoff() {
            moved.push(policy.to_builder().multiplier((multiplier * by * 10.0).round() / 10.0));
        }
        if !policy.spread().is_zero() {
            moved.push(policy.to_builder().spread(spread));
        }
    }
    for jitter in [Jitter::Full, Jitter::Equal].into_iter().chain(JITTERS.map(|it| Jitter::Factor(Ratio::percent(it))))
    {
        moved.push(policy.to_builder().jitter(jitter));
    }
    if let Some(most) = policy.max_attempts() {
        moved.extend([most.get() - 1, most.get() + 1].map(|most| policy.to_builder().max_attempts(most)));
    }
    moved.into_iter().filter_map(|builder| builder.build().ok()).collect()
}

/// Returns whether a policy answers the question: within its limits, and one that `check` does not warn of.
fn answers(asked: &Asked, policy: &Policy) -> bool {
    let attempts = policy.max_attempts().map_or(u32::MAX, core::num::NonZeroU32::get);
    let fits = match asked.call() {
        Some((most, shortest, _)) => attempts >= 2 && attempts <= most && policy.base().as_secs_f64() >= shortest,
        None => true,
    };
    fits && asked.is_jittered(policy) && asked.is_patient(policy) && !asked.is_warned_of(policy)
}
