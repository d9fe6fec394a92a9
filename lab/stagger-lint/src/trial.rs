//! What a change of a policy does in outages of a deployment of known size: attempts, peak and recovery, simulated
//! before and after.

use core::cell::RefCell;
use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_sim::fluid;
use stagger_sim::outage::DefaultGuards;
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario};

use crate::analysis::{PolicyAnalysis, brief};
use crate::context::{Budgeted, DeploymentContext, Purpose};
use crate::rule::{Rule, Severity};
use crate::stalls::{Effort, LENGTHS, Stalls};

/// Outages of a fleet, or of calls of a known load, and the policies that were simulated in them.
#[derive(Debug)]
pub(crate) struct Trial<'a> {
    known: &'a DeploymentContext,
    outages: [Duration; 3],
    kind: Kind,
    seen: RefCell<Vec<(Policy, Option<Vec<Figures>>)>>,
}

#[derive(Debug)]
enum Kind {
    /// A fleet that loses its connections together.
    Fleet { clients: u64, capacity: f64 },
    /// Calls that arrive at random.
    Calls { stalls: Stalls, guards: DefaultGuards },
    /// More clients or attempts than a simulation takes, and too little load for one in proportion.
    Untried,
}

/// The figures of a policy in an outage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    /// Attempts per client or per call.
    pub(crate) attempts: f64,
    /// Attempts within the busiest second, in multiples of the capacity.
    pub(crate) peak: f64,
    /// Time from the end of the outage until 99 % of the clients are back, or calls succeed, in seconds.
    pub(crate) recovery: f64,
    /// Whether the server stays down in some run.
    is_down: bool,
}

/// The usual outages of a fleet: a restart, a short one, and one that is longer than most delays.
const OF_FLEETS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(60), Duration::from_secs(600)];
/// Stands for clients that give up.
const NEVER: Duration = Duration::from_secs(86_400);
/// Clients, attempts and runs of a simulation where the fluid model does not apply.
const CLIENTS: core::ops::RangeInclusive<u64> = 100..=2_000;
const ATTEMPTS: f64 = 200_000.0;
const RUNS: u64 = 2;
/// Calls are simulated for longer than most delays last, and so that several policies can be compared quickly.
const OF_CALLS: Effort = Effort { most_attempts: 600_000.0, afterward: Duration::from_secs(240), runs: 8 };

/// The most by which the fix of a note may worsen a figure: a tenth, less what a simulation of a fleet differs from
/// the fluid model.
const WORSENS: f64 = 1.08;
/// A product that is higher by less than this is the same.
const SAME: f64 = 1.001;
/// With fewer attempts for each client, most of them give up without one. Rounding and breakers keep some more from it.
const FEW: f64 = 0.5;
/// A figure that is worse by more than this is mentioned.
const NOTICEABLE: f64 = 1.1;

impl<'a> Trial<'a> {
    /// Creates the outages of a deployment; returns `None` if its size is not known, or if too much load arrives for
    /// any policy.
    pub(crate) fn new(policy: &Policy, known: &'a DeploymentContext) -> Option<Self> {
        let capacity = known.capacity?.get();
        let (kind, outages) = match known.requests {
            Some(load) if load.get() >= capacity => return None,
            Some(_) if known.purpose != Some(Purpose::Reconnecting) => {
                let guards = match known.budget {
                    Some(Budgeted::With(guards)) => guards,
                    _ => DefaultGuards::None,
                };
                let outages = known.outages_or(LENGTHS);
                match Stalls::new(policy, known, OF_CALLS) {
                    Some(stalls) => (Kind::Calls { stalls, guards }, outages),
                    None => (Kind::Untried, outages),
                }
            }
            _ => {
                PolicyAnalysis::new(policy, known).window()?;
                let clients = known.clients?.get();
                let outages = known.outages_or(OF_FLEETS);
                let can_simulate =
                    |down: &Duration| ReconnectScenario::of_fleet(clients, capacity, *down, u64::MAX).build().is_ok();
                let is_tried = outages.iter().all(can_simulate);
                (if is_tried { Kind::Fleet { clients, capacity } } else { Kind::Untried }, outages)
            }
        };
        Some(Self { known, outages, kind, seen: RefCell::default() })
    }

    /// Returns whether a change that silences this rule is worth it.
    ///
    /// That of a note makes attempts, peak and recovery at most a tenth worse, each in each outage, and none of them
    /// worse in an outage from which the server does not recover. That of a warning does not raise their product over
    /// the outages. A change that cannot be simulated is not made.
    pub(crate) fn allows(&self, aim: Aim, before: &Policy, after: &Policy) -> bool {
        let (Some(before), Some(after)) = (self.figures(before), self.figures(after)) else { return false };
        // Calls that end sooner leave the server more time; only clients that are kept up are missed.
        let aim = Aim { ends_sooner: aim.ends_sooner && matches!(self.kind, Kind::Fleet { .. }), ..aim };
        let mut pairs = before.iter().zip(&after);
        match aim.severity {
            Severity::Note => pairs.all(|(before, after)| {
                let pairs = before.of(aim).into_iter().zip(after.of(aim));
                let most = if before.is_down { 1.0 } else { WORSENS };
                pairs.into_iter().all(|(before, after)| after <= before * most)
            }),
            Severity::Warning => {
                let times: f64 =
                    pairs.map(|(before, after)| product(after.of(aim)) / product(before.of(aim))).product();
                times <= SAME
            }
        }
    }

    /// Returns what becomes worse by a change, for people.
    pub(crate) fn costs(&self, before: &Policy, after: &Policy) -> Vec<String> {
        let (Some(before), Some(after)) = (self.figures(before), self.figures(after)) else { return Vec::new() };
        let worst = |figure: fn(&Figures) -> f64| {
            let pairs = before.iter().zip(&after).zip(self.outages);
            let times = pairs.map(|((before, after), down)| (figure(after) / figure(before), down));
            times.filter(|(times, _)| *times > NOTICEABLE).max_by(|one, other| one.0.total_cmp(&other.0))
        };
        let mut costs = Vec::new();
        if let Some((times, down)) = worst(|figures| figures.attempts.max(1.0)) {
            costs.push(format!("{times:.1} times as many attempts in an outage of {}", brief(down)));
        }
        if let Some((times, down)) = worst(|figures| figures.peak.max(1.0)) {
            costs.push(format!("a peak {times:.1} times as high in an outage of {}", brief(down)));
        }
        if let Some((times, down)) = worst(|figures| figures.recovery.max(1.0)) {
            let takes = format!("recovery takes {times:.1} times as long after an outage of {}", brief(down));
            costs.push(if times < 1_000.0 { takes } else { format!("no recovery from an outage of {}", brief(down)) });
        }
        costs
    }

    /// Returns whether policies can be compared.
    pub(crate) const fn can_simulate(&self) -> bool {
        !matches!(self.kind, Kind::Untried)
    }

    /// Returns the lengths of the outages, for people: `0s, 1m and 10m`.
    pub(crate) fn lengths(&self) -> String {
        let [one, two, three] = self.outages.map(brief);
        format!("{one}, {two} and {three}")
    }

    /// Returns the figures of a policy in the outages, up to the first from which a server of calls does not recover.
    fn figures(&self, policy: &Policy) -> Option<Vec<Figures>> {
        if let Some((_, figures)) = self.seen.borrow().iter().find(|(seen, _)| seen == policy) {
            return figures.clone();
        }
        let figures = match &self.kind {
            Kind::Fleet { clients, capacity } => {
                self.outages.iter().map(|down| self.of_fleet(policy, (*clients, *capacity), *down)).collect()
            }
            Kind::Calls { stalls, guards } => {
                let of_stall = |stall: &crate::stalls::Stall| Figures {
                    attempts: stall.attempts,
                    peak: stall.peak / stalls.capacity(),
                    // The windows by which the server is judged are at least as long.
                    recovery: stall.recovery.as_secs_f64().max(1.0),
                    is_down: stall.down > 0,
                };
                Some(stalls.run(policy, *guards).iter().map(of_stall).collect())
            }
            Kind::Untried => None,
        };
        self.seen.borrow_mut().push((*policy, figures.clone()));
        figures
    }

    fn of_fleet(&self, policy: &Policy, (clients, capacity): (u64, f64), down: Duration) -> Option<Figures> {
        let since = |at: Option<Duration>| at.unwrap_or(NEVER).saturating_sub(down).as_secs_f64();
        let scenario = ReconnectScenario::of_fleet(clients, capacity, down, u64::MAX).build().ok()?;
        if let Ok(figures) = fluid::run(&scenario, policy) {
            return Some(Figures {
                attempts: figures.attempts_per_client,
                peak: figures.peak_second() * scenario.clients() as f64 / scenario.rate(),
                recovery: since(figures.t99),
                is_down: false,
            });
        }
        let analysis = PolicyAnalysis::new(policy, self.known);
        let lasts = down.saturating_add(self.known.min_recovery_time()?);
        let most = (ATTEMPTS / (1.0 + analysis.retries_within(lasts))) as u64;
        let most = most.clamp(*CLIENTS.start(), *CLIENTS.end());
        let scenario = ReconnectScenario::of_fleet(clients, capacity, down, most).build().ok()?;
        let runs: Vec<_> = (1..=RUNS).map(|seed| scenario.run(policy, Seed::new(seed))).collect();
        let mean = |figure: &dyn Fn(&ReconnectFigures) -> f64| runs.iter().map(figure).sum::<f64>() / RUNS as f64;
        Some(Figures {
            attempts: mean(&ReconnectFigures::attempts_per_client),
            peak: mean(&|run| run.peak_second() as f64) / scenario.rate(),
            recovery: mean(&|run| since(run.t99)),
            is_down: false,
        })
    }
}

/// What a change is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    severity: Severity,
    /// Whether it ends calls or connections sooner, for another reason than load, so that fewer recover.
    ends_sooner: bool,
}

impl Aim {
    /// Returns the aim of a change that silences this rule.
    pub(crate) fn of(rule: &Rule) -> Self {
        let ends_sooner = matches!(rule.code(), "S010" | "S011" | "S012" | "S013" | "S019");
        Self { severity: rule.severity(), ends_sooner }
    }

    /// Returns the aim of several changes, one after the other.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { severity: self.severity.max(other.severity), ends_sooner: self.ends_sooner || other.ends_sooner }
    }
}

impl Figures {
    /// Returns the figures that a change with this aim is judged by. Clients that give up without an attempt are no
    /// better than those that make one.
    fn of(&self, aim: Aim) -> [f64; 3] {
        let recovery = if aim.ends_sooner { 1.0 } else { self.recovery.max(0.1) };
        let (attempts, peak) =
            if self.attempts < FEW { (1.0, self.peak.max(1.0)) } else { (self.attempts, self.peak.max(0.01)) };
        [attempts, peak, recovery]
    }
}

fn product(figures: [f64; 3]) -> f64 {
    figures.into_iter().product()
}
