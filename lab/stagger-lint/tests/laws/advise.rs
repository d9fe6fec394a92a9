//! `stagger advise`: its answer holds against random policies, and its figures against other seeds.

use core::num::NonZeroU64;
use core::time::Duration;

use stagger::{Jitter, Policy, Ratio, Seed};
use stagger_core::text::Rate;
use stagger_lint::advise::{Advice, Answers, Candidate, advise};
use stagger_lint::{Budgeted, DeploymentContext, Purpose, warns};
use stagger_sim::Progress;
use stagger_sim::reconnect::{FirstAttempt, ReconnectScenario};

use super::draws::Draws;
use super::law::{Law, Verdict};

/// No random policy is better than the recommended one in everything.
pub(crate) const ADVISE: Law = Law {
    name: "advise",
    statement: "none of 500 random policies dominates what `advise` recommends, and its figures are those of other \
                seeds",
    share: 9,
    case,
};

/// Number of random policies for each question, and of draws, of which some are not valid or not within the patience.
const RIVALS: usize = 500;
const MAX_DRAWS: usize = 50 * RIVALS;

/// Number of runs with which policies that come near are compared.
const RUNS: u64 = 16;

/// Number of runs with other seeds with which a figure that differs is compared again: in one run of ten, one client of
/// a small fleet may decide when 99 % are back, and 16 runs may not have it.
const MORE_RUNS: u64 = 128;

/// Standard errors by which a policy must be better in each figure in which they differ, and by which the figures of
/// the advice may differ from those of other seeds; with three percent on top, which the printed digits hardly show.
const BETTER: f64 = 3.0;
const DIFFERENT: f64 = 6.0;
const TOLERANCE: f64 = 0.03;

fn case(seed: Seed) -> Verdict {
    let mut draws = Draws::new(seed);
    examine(&Asked::random(&mut draws), &mut draws).unwrap_or_else(Verdict::Broken)
}

/// A question to `advise`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) purpose: Option<Purpose>,
    pub(super) clients: u64,
    pub(super) rate: f64,
    pub(super) outage: Option<Duration>,
    pub(super) deadline: Option<Duration>,
    pub(super) min_delay: Option<Duration>,
}

/// Peak, seconds from the end of the outage until 99 % are back, attempts, share that is lost.
pub(super) type Figures = [f64; 4];

const NAMES: [&str; 4] = ["peak", "recovery", "attempts", "lost"];

/// Seconds; longer than any recovery.
pub(super) const NEVER: f64 = 1e9;

fn examine(asked: &Asked, draws: &mut Draws) -> Result<Verdict, String> {
    if asked.is_too_late() {
        return Ok(Verdict::Silent("the outage is as long as the time that a call has, so that no policy serves any"));
    }
    let advice = asked.advice(draws.seed())?;
    let front = advice.front().ok_or_else(|| format!("{asked:?}: no policy was simulated"))?;
    let best = front.best();
    let scenarios = best.by_outage.iter().map(|(outage, _)| asked.scenario(*outage)).collect::<Result<Vec<_>, _>>()?;
    let seeds: Vec<_> = (0..RUNS).map(|_| draws.seed()).collect();
    let runs = |seeds: &[Seed]| -> Vec<Vec<Figures>> {
        seeds.iter().map(|seed| figures(&scenarios, &best.policy, *seed)).collect()
    };
    let ours = runs(&seeds);
    if difference(best, &ours, front.runs).is_some() {
        let others: Vec<_> = (0..MORE_RUNS).map(|_| draws.seed()).collect();
        if let Some(difference) = difference(best, &runs(&others), front.runs) {
            return Err(format!("{asked:?}: {}: {difference}", best.policy));
        }
    }
    // Every policy is judged on the same outages, and on those after which it does worst.
    let of = |policy: &Policy| -> Result<Vec<ReconnectScenario>, String> {
        front.outages_of(policy).into_iter().map(|outage| asked.scenario(outage)).collect()
    };
    let shared = front.outages.len();
    let scenarios = of(&best.policy)?;
    let ours: Vec<Figures> =
        seeds.iter().map(|seed| over_all(&figures(&scenarios, &best.policy, *seed), shared)).collect();
    let once = draws.seed();
    let bound = over_all(&figures(&scenarios, &best.policy, once), shared);
    let (mut rivals, mut drawn) = (0, 0);
    while rivals < RIVALS && drawn < MAX_DRAWS {
        drawn += 1;
        let Some(rival) = asked.rival(draws) else { continue };
        rivals += 1;
        let scenarios = of(&rival)?;
        if !is_near(&scenarios, &rival, once, &bound, shared) {
            continue;
        }
        let theirs: Vec<Figures> =
            seeds.iter().map(|seed| over_all(&figures(&scenarios, &rival, *seed), shared)).collect();
        if dominates(&theirs, &ours) && !asked.is_warned_of(&rival) {
            let (rival_mean, own_mean) = (mean(&theirs), mean(&ours));
            return Err(format!("{asked:?}: {rival} has {rival_mean:?}, {} has {own_mean:?}", best.policy));
        }
    }
    if rivals < RIVALS {
        return Ok(Verdict::Silent("hardly any policy fits the patience and the minimum delay"));
    }
    Ok(Verdict::Held(asked.kind(&advice)))
}

impl Asked {
    pub(super) fn random(draws: &mut Draws) -> Self {
        let purposes = [
            None,
            Some(Purpose::Interactive),
            Some(Purpose::Serverless),
            Some(Purpose::Near),
            Some(Purpose::Far),
            Some(Purpose::Background),
            Some(Purpose::Background),
            Some(Purpose::Reconnecting),
            Some(Purpose::Reconnecting),
        ];
        let purpose = draws.one_of(&purposes).flatten();
        let clients = draws.between(50.0, 2_000.0).round();
        let rate = clients / draws.between(0.5, 40.0);
        let given = [None, Some(Duration::ZERO), Some(draws.duration(0.5, 60.0))];
        let outage = draws.one_of(&given).flatten();
        let time = draws.duration(1.0, 60.0);
        let deadline = Some(time).filter(|_| draws.is(0.4));
        let least = length(draws.between(0.05, 2.0));
        let min_delay = Some(least).filter(|_| draws.is(0.2));
        Self { purpose, clients: clients as u64, rate, outage, deadline, min_delay }
    }

    pub(super) fn advice(&self, seed: Seed) -> Result<Advice, String> {
        let mut fleet = self.fleet(DeploymentContext::default());
        if let Some(purpose) = self.purpose {
            fleet = fleet.purpose(purpose);
        }
        if let Some(deadline) = self.deadline {
            fleet = fleet.deadline(deadline);
        }
        let mut answers = Answers::from_context(fleet);
        if let Some(outage) = self.outage {
            answers = answers.outage(outage);
        }
        if let Some(min_delay) = self.min_delay {
            answers = answers.min_delay(min_delay);
        }
        advise(&answers, seed, &Progress::new()).map_err(|error| format!("{self:?}: {error}"))
    }

    /// Returns the facts with the number of clients and the capacity.
    pub(super) fn fleet(&self, facts: DeploymentContext) -> DeploymentContext {
        match (NonZeroU64::new(self.clients), Rate::per_second(self.rate)) {
            (Some(clients), Some(capacity)) => facts.clients(clients).capacity(capacity),
            _ => facts,
        }
    }

    /// Returns whether `check` warns of a policy, which is no answer then.
    pub(super) fn is_warned_of(&self, policy: &Policy) -> bool {
        let facts = self.fleet(DeploymentContext::default().budget(Budgeted::Yes));
        let facts = self.purpose.map_or(facts, |purpose| facts.purpose(purpose));
        warns(policy, &facts)
    }

    /// Returns whether the calls have given up before the server is up.
    pub(super) fn is_too_late(&self) -> bool {
        let patience = self.call().map(|(_, _, patience)| Duration::from_secs_f64(patience));
        let time = self.deadline.or(patience).filter(|_| !self.is_connection());
        self.outage.zip(time).is_some_and(|(outage, time)| outage >= time)
    }

    pub(super) fn is_connection(&self) -> bool {
        self.purpose == Some(Purpose::Reconnecting)
    }

    /// Returns how many attempts a call may make, its shortest base and its patience without a deadline, in seconds;
    /// `None` for connections and jobs.
    pub(super) fn call(&self) -> Option<(u32, f64, f64)> {
        match self.purpose {
            Some(Purpose::Interactive) => Some((3, 0.02, 10.0)),
            Some(Purpose::Serverless) => Some((3, 0.05, 10.0)),
            Some(Purpose::Near) => Some((4, 0.01, 10.0)),
            Some(Purpose::Far) => Some((4, 0.1, 30.0)),
            None => Some((4, 0.05, 30.0)),
            _ => None,
        }
    }

    /// Returns what the law found, by the kind of the question.
    fn kind(&self, advice: &Advice) -> &'static str {
        let served = advice.front().map_or(0.0, |front| front.best().predicted.recovered_ratio);
        match (self.call(), served >= 0.995) {
            (None, _) if self.is_connection() => "the advice for connections is not dominated",
            (None, true) => "the advice for jobs is not dominated",
            (None, false) => "the advice for jobs that cannot all be served is not dominated",
            (Some(_), true) => "the advice for calls is not dominated",
            (Some(_), false) => "the advice for calls that cannot all be served is not dominated",
        }
    }

    pub(super) fn scenario(&self, outage: Duration) -> Result<ReconnectScenario, String> {
        let first = if self.is_connection() { FirstAttempt::AfterDelay } else { FirstAttempt::Immediate };
        let builder = ReconnectScenario::builder(self.clients).rate(self.rate).first_attempt(first);
        let builder = builder.backlog((self.rate / 2.0).ceil() as u32).down_for(outage);
        builder.build().map_err(|error| format!("{self:?}: {error}"))
    }

    /// Draws a policy that answers the question: any base, cap, multiplier, jitter and spread within its limits.
    fn rival(&self, draws: &mut Draws) -> Option<Policy> {
        let accepts = self.clients as f64 / self.rate;
        let outage = self.outage.map_or(60.0, |outage| outage.as_secs_f64().min(60.0));
        let least = self.min_delay.unwrap_or_default();
        let share = Ratio::percent((5.0 + 85.0 * draws.share()) as u32);
        let all = [Jitter::Full, Jitter::Equal, Jitter::Decorrelated, Jitter::Factor(share)];
        let jitter = draws.one_of(&all)?;
        let multiplier = draws.between(1.2, 10.0);
        let is_constant = draws.is(0.2);
        let start = |base: f64, cap: f64| {
            let (base, cap) = (length(base), length(cap));
            let builder = match jitter {
                Jitter::Decorrelated => return Policy::decorrelated(base, cap),
                jitter if is_constant => return Policy::constant(base).jitter(jitter),
                jitter => Policy::exponential(base, cap).multiplier(multiplier).jitter(jitter),
            };
            if least.is_zero() { builder } else { builder.floor(least) }
        };
        let limit = self.deadline.filter(|_| !self.is_connection());
        let policy = match self.call() {
            None => {
                let longest = limit.map_or(f64::INFINITY, |limit| limit.as_secs_f64());
                let shortest = if self.is_connection() { 0.5 } else { 1.0_f64 };
                let shortest = shortest.max(least.as_secs_f64());
                let base = draws.between(shortest, accepts.max(5.0).min(longest).max(shortest));
                let cap = draws.between(base, (4.0 * accepts).max(60.0));
                // `check` warns of a spread in which the server cannot accept all clients.
                let spread = draws.between(accepts.min(0.5 * longest), (3.0 * (accepts + outage)).min(longest));
                let builder = start(base, cap).spread(length(spread)).unlimited_attempts();
                match self.is_connection() {
                    true => builder.stable_after(Duration::from_secs(10)),
                    false => builder,
                }
            }
            Some((most, shortest, patience)) => {
                let patience = limit.map_or(patience, |limit| limit.as_secs_f64());
                let shortest = shortest.max(least.as_secs_f64());
                let base = draws.between(shortest, (accepts + outage).min(patience).max(2.0 * shortest));
                let cap = draws.between(base, patience.max(1.01 * base));
                start(base, cap).max_attempts(draws.one_of(&[2, 3, 4])?.min(most))
            }
        };
        let policy = limit.map_or(policy, |limit| policy.max_elapsed(limit)).build().ok()?;
        if self.is_jittered(&policy) && self.is_patient(&policy) { Some(policy) } else { None }
    }

    /// Returns whether the first delay is not below the minimum and has a jitter of at least a twentieth.
    /// Decorrelated jitter below its cap is none, nor is full jitter below a floor.
    pub(super) fn is_jittered(&self, policy: &Policy) -> bool {
        let least = self.min_delay.unwrap_or_default();
        policy.bounds(1).is_some_and(|(earliest, latest)| {
            earliest >= least && latest - earliest >= (latest + earliest).mul_f64(0.0499)
        })
    }

    /// Returns whether all delays of a call without a deadline are within its patience.
    pub(super) fn is_patient(&self, policy: &Policy) -> bool {
        let patience = self.call().map(|(_, _, patience)| patience).filter(|_| self.deadline.is_none());
        let longest = policy.max_attempts().and_then(|most| policy.elapsed_bounds(most.get() - 1));
        patience.zip(longest).is_none_or(|(patience, (_, longest))| longest.as_secs_f64() <= patience)
    }
}

/// Returns a length in two digits, which is as exact as the lengths of the advice are.
pub(super) fn length(seconds: f64) -> Duration {
    let milliseconds = (seconds * 1_000.0).max(1.0);
    let step = 10_f64.powf(milliseconds.log10().floor() - 1.0).max(1.0);
    Duration::from_millis(((milliseconds / step).round() * step) as u64)
}

/// Returns the figures in each scenario.
pub(super) fn figures(scenarios: &[ReconnectScenario], policy: &Policy, seed: Seed) -> Vec<Figures> {
    scenarios.iter().map(|scenario| figures_of(scenario, policy, seed)).collect()
}

fn figures_of(scenario: &ReconnectScenario, policy: &Policy, seed: Seed) -> Figures {
    let run = scenario.run(policy, seed);
    let recovery = run.t99.map_or(NEVER, |time| time.saturating_sub(scenario.down_time()).as_secs_f64());
    let lost = 1.0 - run.connected as f64 / run.clients as f64;
    [run.peak_second() as f64, recovery, run.attempts_per_client(), lost]
}

/// Returns the worst figures of all outages, and the mean number of attempts in those that all policies share.
pub(super) fn over_all(each: &[Figures], shared: usize) -> Figures {
    let worst = |at: usize| each.iter().map(|figures| figures[at]).fold(0.0, f64::max);
    [worst(0), worst(1), each[..shared].iter().map(|figures| figures[2]).sum::<f64>() / shared as f64, worst(3)]
}

/// Returns whether a policy is not clearly worse in a figure, in the run with this seed.
fn is_near(scenarios: &[ReconnectScenario], policy: &Policy, seed: Seed, bound: &Figures, shared: usize) -> bool {
    let mut attempts = 0.0;
    scenarios.iter().enumerate().all(|(at, scenario)| {
        let mut figures = figures_of(scenario, policy, seed);
        if at < shared {
            attempts += figures[2] / shared as f64;
        }
        figures[2] = attempts;
        (0..4).all(|at| figures[at] <= 1.02 * bound[at] + 1e-3)
    })
}

/// Returns a figure of the advice that other seeds do not give.
fn difference(told: &Candidate, ours: &[Vec<Figures>], runs: u32) -> Option<String> {
    told.by_outage.iter().enumerate().find_map(|(outage, (_, told))| {
        let recovery = told.recovery.map_or(NEVER, |recovery| recovery.as_secs_f64());
        let told = [told.peak_second, recovery, told.attempts_per_client, 1.0 - told.recovered_ratio];
        let got: Vec<Figures> = ours.iter().map(|run| run[outage]).collect();
        // A few clients decide whether 99 % are ever served, and the longest wait of the last of them.
        let never = got.iter().any(|run| run[1] >= NEVER) || told[1] >= NEVER;
        let different = |at: usize| {
            let error = (variance(&got, at) * (1.0 / f64::from(runs) + 1.0 / got.len() as f64)).sqrt();
            let expected = mean(&got)[at];
            (told[at] - expected).abs() > DIFFERENT * error + TOLERANCE * expected.max(if at == 3 { 1.0 } else { 0.0 })
        };
        let at = (0..4).filter(|&at| at != 1 || !never).find(|&at| different(at))?;
        Some(format!("{} told as {}, but other seeds give {}", NAMES[at], told[at], mean(&got)[at]))
    })
}

/// Returns whether these figures are better, in each figure in which they differ in any run, and in one of them by more
/// than the tolerance. Means of runs that differ may be equal by chance.
fn dominates(theirs: &[Figures], ours: &[Figures]) -> bool {
    let gain = |at: usize| mean(ours)[at] - mean(theirs)[at];
    let error = |at: usize| ((variance(ours, at) + variance(theirs, at)) / ours.len() as f64).sqrt();
    let differs = |at: usize| theirs.iter().zip(ours).any(|(one, other)| (one[at] - other[at]).abs() > 1e-9);
    let differing: Vec<usize> = (0..4).filter(|&at| differs(at)).collect();
    differing.iter().all(|&at| gain(at) > BETTER * error(at))
        && differing.iter().any(|&at| gain(at) > TOLERANCE * mean(ours)[at])
}

pub(super) fn mean(runs: &[Figures]) -> Figures {
    let mut mean = [0.0; 4];
    for run in runs {
        (0..4).for_each(|at| mean[at] += run[at] / runs.len() as f64);
    }
    mean
}

fn variance(runs: &[Figures], at: usize) -> f64 {
    let mean = mean(runs)[at];
    runs.iter().map(|run| (run[at] - mean).powi(2)).sum::<f64>() / (runs.len() as f64 - 1.0)
}
