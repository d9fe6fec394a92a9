//! Tries guards beside a policy: which of them lets the server recover where the policy alone does not?

use core::time::Duration;

use stagger_core::breaker::CircuitBreaker;
use stagger_core::budget::{SuccessRate, Tokens, Window};
use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{Outcome, Policy, Seed, StopReason};

use crate::engine::progress::Progress;
use crate::engine::sweep::Sweep;
use crate::engine::time::{instant, micros};
use crate::outage::{OutageFigures, OutageKind, OutageScenario, ProcessGuards};
use crate::scenario::error::ScenarioError;

/// The guards that limit the retries of all calls of a process together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecommendedGuards {
    /// No guards.
    None,
    /// A [token bucket](Tokens) with its default settings.
    Tokens,
    /// A [budget of a share of recent traffic](Window) with its default settings.
    Window,
    /// A [budget that needs a share of successes](SuccessRate) with its default settings.
    SuccessRate,
    /// A [circuit breaker](CircuitBreaker) with its default settings.
    Breaker,
}

/// The guards that were simulated beside the policy, and what they change.
///
/// Each client is a process with its own guards. The clients together send [`load`](Self::load) requests a second to
/// a server that stalls for [`stall`](Self::stall).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GuardTrial {
    /// The recommended guards: the first that let the server recover; [`RecommendedGuards::None`] if the policy alone
    /// does, or if none of them helps.
    pub guards: RecommendedGuards,
    /// Requests per second, as a share of the capacity.
    pub load: f64,
    /// Length of the stall.
    pub stall: Duration,
    /// Time from the end of the stall to the end of the simulation.
    pub watched: Duration,
    /// The behavior of the policy alone.
    pub without: GuardFigures,
    /// The behavior with the recommended guards.
    pub with: GuardFigures,
}

/// The behavior of the server after the stall.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GuardFigures {
    /// Time from the end of the stall until the server has recovered, the longest of all runs; `None` if it did not in
    /// one of them.
    pub recovery: Option<Duration>,
    /// Share of the requests from the start of the stall that succeeded, in 0..=1.
    pub success_ratio: f64,
}

const TRIED: [RecommendedGuards; 4] =
    [RecommendedGuards::Tokens, RecommendedGuards::SuccessRate, RecommendedGuards::Window, RecommendedGuards::Breaker];

/// A busy server, and a stall that all attempts of a short call fail in.
const LOAD: f64 = 0.8;
const STALL: Duration = Duration::from_secs(10);
const START: Duration = Duration::from_secs(20);

/// The time after the stall in which the server may recover, beside the delays of the policy.
const RECOVERY: Duration = Duration::from_secs(120);

/// Jobs per second of the simulated server. A larger fleet and its server are scaled down in proportion.
const MAX_CAPACITY: f64 = 200.0;

const RUNS: u64 = 3;

/// Attempts after which an endless call counts as not limited by a guard.
const MAX_ATTEMPTS: u32 = 100;

impl RecommendedGuards {
    /// Returns the name that `stagger simulate outage --guards` takes: `tokens`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tokens => "tokens",
            Self::Window => "window",
            Self::SuccessRate => "success-rate",
            Self::Breaker => "breaker",
        }
    }

    /// Returns the method call that adds the guards to a retrier, as Rust code: `.budget(Tokens::new())`.
    #[must_use]
    pub const fn rust_code(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Tokens => ".budget(Tokens::new())",
            Self::Window => ".budget(Window::new())",
            Self::SuccessRate => ".budget(SuccessRate::new())",
            Self::Breaker => ".breaker(CircuitBreaker::new(stagger::seed()))",
        }
    }

    fn process(self, seed: Seed) -> ProcessGuards {
        let process = ProcessGuards::none();
        match self {
            Self::None => process,
            Self::Tokens => process.budget(Tokens::new()),
            Self::Window => process.budget(Window::new()),
            Self::SuccessRate => process.budget(SuccessRate::new()),
            Self::Breaker => process.breaker(CircuitBreaker::new(seed)),
        }
    }

    /// Returns whether a process that makes a single call makes all its attempts, so that the figures of a mass
    /// failure, in which each client makes one call, are the same with the guards.
    fn leave_a_single_call(self, policy: &Policy, seed: Seed) -> bool {
        let process = self.process(seed);
        let (mut state, mut permit, mut now) = (RetryState::new(), Permits::NONE, 0_u64);
        for _ in 0..MAX_ATTEMPTS {
            let mut call = RetryMachine::new(policy, &mut state, seed);
            let Ok(begun) = call.begin(permit, || instant(now), &process.guards()) else { return false };
            match call.decide(Outcome::TRANSIENT, begun, || instant(now), &process.guards()) {
                Decision::Retry { after, permit: next, .. } => {
                    now = now.saturating_add(micros(after));
                    permit = next;
                }
                decision => {
                    return !matches!(decision, Decision::Stop(StopReason::Budget | StopReason::Breaker));
                }
            }
        }
        true
    }
}

/// Tries guards beside the policy; returns `None` if it was cancelled.
pub(super) fn try_guards(
    clients: u64,
    capacity: f64,
    policy: &Policy,
    seed: Seed,
    progress: &Progress,
) -> Result<Option<GuardTrial>, ScenarioError> {
    let scale = (MAX_CAPACITY / capacity).min(1.0);
    let processes = ((clients as f64 * scale).round() as u32).clamp(1, 1 << crate::engine::CLIENT_BITS);
    let longest = policy.spread().saturating_add(policy.cap().unwrap_or_default().saturating_mul(2));
    let capacity = capacity * scale;
    let watched = RECOVERY.saturating_add(longest).min(4 * RECOVERY);
    let scenario = OutageScenario::builder(LOAD * capacity)
        .capacity(capacity)
        // The backlog of a server whose queue is three times the timeout.
        .queue((3.0 * capacity).ceil() as u32)
        .processes(processes)
        .outage(OutageKind::Stall, START, STALL)
        .horizon(START + STALL + watched)
        .build()?;
    let seeds: Vec<_> = (0..RUNS).map(|run| seed.for_call(run)).collect();
    let figures = |guards: RecommendedGuards| -> Option<GuardFigures> {
        let runs = Sweep::new().run(&[guards], &seeds, progress, |guards, seed, progress| {
            scenario.run_with_progress(policy, |seed| guards.process(seed), seed, progress)
        });
        let runs = runs.into_iter().flatten().collect::<Option<Vec<OutageFigures>>>()?;
        let recoveries: Option<Vec<Duration>> = runs.iter().map(OutageFigures::recovery).collect();
        Some(GuardFigures {
            recovery: recoveries.and_then(|all| all.into_iter().max()),
            success_ratio: runs.iter().map(OutageFigures::success_ratio).sum::<f64>() / runs.len() as f64,
        })
    };
    let Some(without) = figures(RecommendedGuards::None) else { return Ok(None) };
    let none =
        GuardTrial { guards: RecommendedGuards::None, load: LOAD, stall: STALL, watched, without, with: without };
    if without.recovery.is_some() {
        return Ok(Some(none));
    }
    for guards in TRIED.into_iter().filter(|guards| guards.leave_a_single_call(policy, seed)) {
        let Some(with) = figures(guards) else { return Ok(None) };
        if with.recovery.is_some() {
            return Ok(Some(GuardTrial { guards, with, ..none }));
        }
    }
    Ok(Some(none))
}
