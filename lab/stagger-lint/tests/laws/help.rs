//! What `check` suggests makes nothing worse that it does not say.

use core::time::Duration;

use stagger::{Policy, Seed};
use stagger_lint::Finding;
use stagger_sim::outage::DefaultGuards;
use stagger_sim::outage::OutageFigures;
use stagger_sim::reconnect::ReconnectFigures;

use super::circumstances::{Calls, Fleet};
use super::draws::Draws;
use super::law::{Law, Verdict};
use super::policies::{self, Delays};

pub(crate) const LAW: Law = Law {
    name: "help",
    statement: "the help of `check` does not make peak, attempts or recovery worse, unless it says so",
    share: 100,
    case,
};

fn case(seed: Seed) -> Verdict {
    let mut draws = Draws::new(seed);
    let is_fleet = draws.is(0.75);
    let verdict = if is_fleet { fleet(&mut draws) } else { budget(&mut draws) };
    verdict.unwrap_or(Verdict::Silent("not a valid scenario"))
}

/// Tries the budget that S016 recommends.
fn budget(draws: &mut Draws) -> Option<Verdict> {
    let calls = Calls::draw(draws)?;
    let policy = policies::any(draws, Delays { shortest: 0.01, longest: 10.0 });
    let findings = stagger_lint::check(&policy, &calls.context);
    let found = findings.iter().find(|finding| finding.rule().code() == "S016");
    let Some(advice) = found.and_then(|finding| finding.suggestion().advice()) else { return Some(NO_HELP) };
    let said = DefaultGuards::TRIED.into_iter().find(|guards| advice.ends_with(&format!("--budget={}", guards.name())));
    let Some(said) = said else { return Some(Verdict::Silent("no budget recommended")) };
    let seeds = [(); RUNS].map(|()| draws.seed());
    let runs = |budget| seeds.map(|seed| calls.run(&policy, budget, seed));
    let (before, after) = (runs(calls.budget), runs(said));
    let down = |runs: &[OutageFigures]| runs.iter().filter(|run| run.is_metastable()).count();
    let mean = |figure: fn(&OutageFigures) -> f64, runs: &[OutageFigures]| {
        Mean::of(&runs.iter().map(figure).collect::<Vec<_>>())
    };
    let [attempts_before, attempts] = [&before, &after].map(|runs| mean(OutageFigures::amplification, runs));
    let worse = if down(&after) > RUNS / 2 && down(&before) < RUNS / 2 {
        format!("down in {} of {RUNS} runs, before in {}", down(&after), down(&before))
    } else if calls.budget == DefaultGuards::None && attempts.exceeds(attempts_before, 0.0) {
        format!("attempts {:.2} -> {:.2}", attempts_before.mean, attempts.mean)
    } else {
        return Some(Verdict::Held("a budget"));
    };
    Some(Verdict::Broken(format!("S016: {worse} with {}; {}", said.name(), calls.command(&policy, calls.budget))))
}

const NO_HELP: Verdict = Verdict::Silent("no help");

/// Runs before and after.
const RUNS: usize = 4;
/// Full jitter lets some clients retry at once, which adds up to a quarter to the second of the first wave.
const TOLERANCE: f64 = 0.25;
/// A lower peak, in multiples of the capacity, is no storm.
const PEAK: f64 = 3.0;
/// A share of clients that give up that is as good as none.
const GAVE_UP: f64 = 0.001;
/// The spread adds an attempt before the first delay.
const ONE_ATTEMPT: f64 = 1.0;

fn fleet(draws: &mut Draws) -> Option<Verdict> {
    let fleet = Fleet::draw(draws)?;
    let window = fleet.window();
    let policy = policies::any(draws, Delays { shortest: 0.02, longest: (2.0 * window).clamp(1.0, 60.0) });
    let findings = stagger_lint::check(&policy, &fleet.context);
    let helped: Vec<(&'static str, Option<&Finding>, Policy)> = findings
        .iter()
        .filter_map(|finding| Some((finding.rule().code(), Some(finding), *finding.suggestion().policy()?)))
        .chain([("fix", None, stagger_lint::fix(&policy, &fleet.context, &[]))])
        .filter(|(.., helped)| *helped != policy)
        .collect();
    let Some((code, finding, helped)) = draws.one_of(&helped) else { return Some(NO_HELP) };
    let seeds = [(); RUNS].map(|()| draws.seed());
    let (before, after) = (Measured::of(&fleet, &policy, &seeds), Measured::of(&fleet, &helped, &seeds));
    let said: Vec<&str> = match finding {
        Some(finding) => finding.suggestion().advice().into_iter().collect(),
        None => findings.iter().filter_map(|finding| finding.suggestion().advice()).collect(),
    };
    let says = |what: &str| said.iter().any(|text| text.contains(what));
    let is_fix = finding.is_none();
    let gives_up = findings.iter().any(|finding| finding.rule().code() == "S023");
    let worse = after.worse_than(&before, &Help { policy: &policy, helped: &helped, gives_up, is_fix }, window, says);
    Some(match worse {
        None => Verdict::Held(code),
        Some(what) => Verdict::Broken(format!("{code}: {what}; `{policy}` -> `{helped}`; {}", fleet.command(&policy))),
    })
}

/// The mean and the standard error of a figure over the runs.
#[derive(Clone, Copy, Debug)]
struct Mean {
    mean: f64,
    error: f64,
}

impl Mean {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        Self { mean, error: (variance / count).sqrt() }
    }

    /// Returns whether this exceeds the other by more than noise, and this.
    fn exceeds(self, other: Self, least: f64) -> bool {
        let noise = 3.0 * self.error.hypot(other.error);
        self.mean > least.max(other.mean * (1.0 + TOLERANCE)) + noise
    }
}

/// A suggestion, to be judged by simulations.
struct Help<'a> {
    policy: &'a Policy,
    helped: &'a Policy,
    /// Whether `check` says that the clients give up.
    gives_up: bool,
    is_fix: bool,
}

struct Measured {
    /// Attempts within the busiest second, in multiples of the capacity.
    peak: Mean,
    attempts: Mean,
    gave_up: Mean,
    /// Time from the end of the outage until the last client is back, in seconds.
    recovery: Mean,
}

impl Measured {
    fn of(fleet: &Fleet, policy: &Policy, seeds: &[Seed]) -> Self {
        let runs: Vec<_> = seeds.iter().map(|seed| fleet.run(policy, *seed)).collect();
        let mean = |figure: &dyn Fn(&ReconnectFigures) -> f64| Mean::of(&runs.iter().map(figure).collect::<Vec<_>>());
        let never = Duration::from_secs(86_400);
        Self {
            peak: mean(&|run| run.peak_second() as f64 / fleet.capacity),
            attempts: mean(&|run| run.attempts_per_client()),
            gave_up: mean(&|run| run.gave_up as f64 / run.clients as f64),
            recovery: mean(&|run| run.t99.unwrap_or(never).saturating_sub(fleet.down).as_secs_f64()),
        }
    }

    /// Returns what is worse than before by more than noise although the help does not say so.
    ///
    /// Recovery takes clients / capacity and the spread with every policy, and clients in step return up to one delay
    /// after the server, which is a matter of chance. Clients that have given up make no attempts and do not return, so
    /// their number, and what depends on it, is judged only if the policy does not give up.
    fn worse_than(&self, before: &Self, help: &Help<'_>, window: f64, says: impl Fn(&str) -> bool) -> Option<String> {
        let Help { policy, helped, gives_up, is_fix } = *help;
        let spread = helped.spread().as_secs_f64();
        let longest =
            (1..=16).filter_map(|nth| policy.bounds(nth)).map(|(_, most)| most.as_secs_f64()).fold(0.0, f64::max);
        let least = window + spread;
        let compare = |what: &str, now: Mean, was: Mean, least: f64| {
            now.exceeds(was, least).then(|| format!("{what} {:.2} -> {:.2}", was.mean, now.mean))
        };
        compare("peak", self.peak, before.peak, PEAK)
            .or_else(|| compare("gave up", self.gave_up, before.gave_up, GAVE_UP).filter(|_| !gives_up))
            .or_else(|| {
                let attempts = before.attempts.mean + ONE_ATTEMPT;
                let worse = compare("attempts", self.attempts, before.attempts, attempts);
                let is_expected = (gives_up && is_fix) || says("as many attempts");
                worse.filter(|_| !is_expected)
            })
            .or_else(|| {
                let least = least.max(before.recovery.mean + spread + longest);
                let worse = compare("recovery", self.recovery, before.recovery, least);
                worse.filter(|_| !gives_up && !says("after the server"))
            })
    }
}
