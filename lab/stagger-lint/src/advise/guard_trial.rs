//! An outage under steady traffic: how many requests are served, and with which guards does the server recover where
//! the policy alone does not?

use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{Instant, Outcome, Policy, Seed, StopReason};

use crate::stalls::round;
use stagger_sim::Progress;
use stagger_sim::ScenarioError;
use stagger_sim::Sweep;
use stagger_sim::outage::{DefaultGuards, OutageFigures, OutageKind, OutageScenario, Verdict};

/// An outage under steady traffic, the guards that were simulated beside the policy, and what they change.
///
/// Each client is a process with its own guards. The clients together send [`rate`](Self::rate) requests a second to
/// a server that stalls for [`stall`](Self::stall), from [`start`](Self::start) on: most calls begin before or during
/// the outage, and not with it, as they do in a mass disconnect. A large fleet is simulated in proportion. All other
/// settings are those of a default [`OutageScenario`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GuardTrial {
    /// The recommended guards: those with which the server recovers and most requests succeed;
    /// [`DefaultGuards::None`] if the policy alone does as well, or if the server recovers with none of them. If
    /// `check` warns of a policy without guards, those with which most requests succeed, unless they make it worse.
    pub guards: DefaultGuards,
    /// Number of simulated clients.
    pub processes: u32,
    /// Requests per second.
    pub rate: f64,
    /// The capacity of the simulated server per second.
    pub capacity: f64,
    /// The number of requests that may queue at the server.
    pub backlog: u32,
    /// Start of the stall.
    pub start: Duration,
    /// Length of the stall.
    pub stall: Duration,
    /// The end of the simulation, from its start.
    pub horizon: Duration,
    /// Number of runs, with consecutive seeds from that of the question; the figures are means over the runs.
    pub runs: u32,
    /// Whether guards were tried.
    pub tried: bool,
    /// The behavior of the policy alone.
    pub without: GuardFigures,
    /// The behavior with the recommended guards.
    pub with: GuardFigures,
}

/// The behavior of the server after the stall.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GuardFigures {
    /// The worst verdict of all runs.
    pub verdict: Verdict,
    /// Time from the end of the stall until the server has recovered; `None` if it did not in one of the runs.
    pub recovery: Option<Duration>,
    /// Share of the requests from the start of the stall that succeeded, in 0..=1.
    pub success_ratio: f64,
}

/// Which guards are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    /// None: so few clients need none.
    None,
    /// Those that improve something.
    Better,
    /// Those that make nothing worse: there has to be one.
    NoWorse,
}

/// A busy server, and the lengths of a stall: one that all attempts of a short call fail in, up to a minute.
const LOAD: f64 = 0.8;
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(60);
const START: Duration = Duration::from_secs(20);

/// The time after the stall in which the server may recover, beside the delays of the policy; and in windows of the
/// verdict, which are long if requests are rare.
const RECOVERY: Duration = Duration::from_secs(120);
const WINDOWS: f64 = 20.0;
const REQUESTS_IN_WINDOW: f64 = 100.0;

/// The longest simulation.
const MAX_HORIZON: Duration = Duration::from_secs(86_400);

/// Jobs per second of the simulated server. A larger fleet and its server are scaled down in proportion.
const MAX_CAPACITY: f64 = 200.0;

const RUNS: u32 = 3;

/// The smallest difference in the share of successes that is worth guards, or other guards.
const NOTICEABLE: f64 = 0.02;

/// Attempts after which an endless call counts as not limited by a guard.
const MAX_ATTEMPTS: u32 = 100;

/// Simulates a stall of about this length, and tries guards beside the policy; returns `None` if it was cancelled, or
/// if requests are too rare.
pub(super) fn try_guards(
    clients: u64,
    capacity: f64,
    policy: &Policy,
    outage: Duration,
    tried: Tried,
    seed: Seed,
    progress: &Progress,
) -> Result<Option<GuardTrial>, ScenarioError> {
    let (stall, start) = (outage.clamp(SHORTEST, LONGEST), START);
    let simulated = capacity.min(MAX_CAPACITY);
    let processes = ((clients as f64 * simulated / capacity).round() as u32).clamp(1, OutageScenario::MAX_PROCESSES);
    // The backlog of a server whose queue is three times the timeout.
    let (rate, backlog) = (round(LOAD * simulated), (3.0 * simulated).ceil() as u32);
    let horizon = (start + stall).saturating_add(watched(policy, rate));
    if horizon > MAX_HORIZON {
        return Ok(None);
    }
    let scenario = OutageScenario::builder(rate)
        .capacity(simulated)
        .queue(backlog)
        .processes(processes)
        .outage(OutageKind::Stall, start, stall)
        .horizon(horizon)
        .build()?;
    let seeds: Vec<_> = (0..u64::from(RUNS)).map(|run| Seed::new(seed.get().wrapping_add(run))).collect();
    let figures = |guards: DefaultGuards| -> Option<GuardFigures> {
        let runs = Sweep::new().run(&[guards], &seeds, progress, |guards, seed, progress| {
            scenario.run_with_progress(policy, |seed| guards.process(seed), seed, progress)
        });
        GuardFigures::of(&runs.into_iter().flatten().collect::<Option<Vec<OutageFigures>>>()?)
    };
    let Some(without) = figures(DefaultGuards::None) else { return Ok(None) };
    let (mut guards, mut with) = (DefaultGuards::None, without);
    let kinds = if tried == Tried::None { &[][..] } else { &DefaultGuards::TRIED };
    for kind in kinds.iter().copied().filter(|guards| leave_a_single_call(*guards, policy, seed)) {
        let Some(figures) = figures(kind) else { return Ok(None) };
        let is_first = tried == Tried::NoWorse && guards == DefaultGuards::None && figures.is_no_worse_than(&without);
        if is_first || figures.is_better_than(&with) {
            (guards, with) = (kind, figures);
        }
    }
    let (capacity, runs, tried) = (simulated, RUNS, tried != Tried::None);
    Ok(Some(GuardTrial {
        guards,
        processes,
        rate,
        capacity,
        backlog,
        start,
        stall,
        horizon,
        runs,
        tried,
        without,
        with,
    }))
}

/// Returns whether a process that makes a single call makes all its attempts, so that the figures of a mass
/// failure, in which each client makes one call, are the same with the guards.
fn leave_a_single_call(guards: DefaultGuards, policy: &Policy, seed: Seed) -> bool {
    let process = guards.process(seed);
    let (mut state, mut permit, mut now) = (RetryState::new(), Permits::NONE, Instant::ZERO);
    for _ in 0..MAX_ATTEMPTS {
        let mut call = RetryMachine::new(policy, &mut state, seed);
        let Ok(begun) = call.begin(permit, || now, &process.guards()) else { return false };
        match call.decide(Outcome::TRANSIENT, begun, || now, &process.guards()) {
            Decision::Retry { after, permit: next, .. } => {
                now = now.saturating_add(after);
                permit = next;
            }
            decision => {
                return !matches!(decision, Decision::Stop(StopReason::Guard(_)));
            }
        }
    }
    true
}

/// Returns the time after the stall in which the server may recover.
fn watched(policy: &Policy, rate: f64) -> Duration {
    let longest = policy.spread().saturating_add(policy.cap().unwrap_or_else(|| policy.base()).saturating_mul(2));
    let windows = Duration::try_from_secs_f64((WINDOWS * REQUESTS_IN_WINDOW / rate).ceil()).unwrap_or(Duration::MAX);
    let watched = RECOVERY.saturating_add(longest).min(4 * RECOVERY).max(windows);
    // Whole seconds are easier to read, and to repeat.
    Duration::from_secs(watched.as_secs().saturating_add(u64::from(watched.subsec_nanos() > 0)))
}

impl GuardFigures {
    /// Returns the figures of several runs; `None` if there are none.
    fn of(runs: &[OutageFigures]) -> Option<Self> {
        let recoveries: Option<Vec<Duration>> = runs.iter().map(OutageFigures::recovery).collect();
        let count = u32::try_from(runs.len()).ok()?;
        Some(Self {
            verdict: runs.iter().map(OutageFigures::state_at_horizon).max_by_key(severity)?,
            recovery: recoveries.map(|all| all.into_iter().sum::<Duration>() / count),
            success_ratio: runs.iter().map(OutageFigures::success_ratio).sum::<f64>() / f64::from(count),
        })
    }

    /// Returns whether the server survived the stall in every run, and stayed up since.
    #[must_use]
    pub const fn is_recovered(&self) -> bool {
        matches!(self.verdict, Verdict::NeverFell | Verdict::Recovered { .. })
    }

    fn is_no_worse_than(&self, other: &Self) -> bool {
        (self.is_recovered() || !other.is_recovered()) && self.success_ratio >= other.success_ratio - NOTICEABLE
    }

    fn is_better_than(&self, other: &Self) -> bool {
        self.is_recovered() && (!other.is_recovered() || self.success_ratio > other.success_ratio + NOTICEABLE)
    }
}

/// Orders verdicts: a worse one is greater.
fn severity(verdict: &Verdict) -> (u8, Duration) {
    match *verdict {
        Verdict::NeverFell => (0, Duration::ZERO),
        Verdict::Recovered { after } => (1, after),
        Verdict::Relapsed { at, is_up: true } => (2, Duration::MAX.saturating_sub(at)),
        Verdict::Relapsed { at, is_up: false } | Verdict::StillDown { since: at } => {
            (3, Duration::MAX.saturating_sub(at))
        }
        // A verdict that is not known here recommends nothing.
        _ => (4, Duration::ZERO),
    }
}
