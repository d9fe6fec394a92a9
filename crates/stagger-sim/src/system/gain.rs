//! The loop gain: whether retries can keep a service overloaded, by a formula.

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState};
use stagger_core::{Outcome, Seed};

use super::definition::System;
use super::edge::{CallOrder, NestedCalls};
use super::service::{Service, StaleWork};
use super::state::{Stream, instant};
use super::trigger::Fault;

/// The loop gain of the retries around one service.
///
/// A full queue makes answers late, callers retry, and their retries keep the queue full: a cycle. Its *gain* is the
/// load that the service is offered, over its capacity, if a share q of its attempts fails, for the q at which that is
/// largest. Below 1 the service works off any queue, even if nothing succeeds; above 1 there is a share of failures
/// that sustains itself, and a trigger that lasts long enough starts it.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::policy;
/// use stagger_sim::system::{Edge, Service, System};
///
/// let attempts = policy!(zero().max_attempts(3));
/// let service = |name: &str| Service::new(name).service_time(Duration::from_millis(2)).backlog(1_500);
/// let system = System::builder(50.0)
///     .service(service("gateway"))
///     .service(service("database"))
///     .edge(Edge::from_users("gateway").policy(attempts))
///     .edge(Edge::between("gateway", "database").policy(attempts))
///     .build()?;
///
/// // 50 requests per second with 3 × 3 attempts, for a database that can serve 500.
/// let gain = system.loop_gains()[1];
/// assert!((gain.gain - 0.9).abs() < 1e-9 && gain.is_closed);
/// // Retries between the services are to be given up first: then 50 × 3 attempts are left.
/// assert_eq!(gain.mend_first, Some(1));
/// assert!((gain.gain_after_mending - 0.3).abs() < 1e-9);
/// # Ok::<(), stagger_sim::system::SystemError>(())
/// ```
///
/// It is a formula for a steady state, not a simulation: `docs/guide/systems.md` says how often it is right.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LoopGain {
    /// The service, by its position.
    pub service: usize,
    /// Attempts per second at the service over its capacity, for the share of failures at which that is largest.
    pub gain: f64,
    /// Whether the queue can make answers late at all: not if the backlog is worked off within the time limit of every
    /// caller, nor if hopeless work of the users is dropped. If the cycle is open, its gain sustains nothing.
    pub is_closed: bool,
    /// The edge whose retries raise the gain most, by its position; among equal ones, that nearest to the service.
    /// `None` if no edge retries.
    pub mend_first: Option<usize>,
    /// The gain if that edge made one attempt per call; equal to `gain` if there is none.
    pub gain_after_mending: f64,
}

impl LoopGain {
    /// Returns whether the retries sustain an overload: the cycle is closed, and its gain is above 1.
    #[must_use]
    pub fn sustains_overload(&self) -> bool {
        self.is_closed && self.gain > 1.0
    }
}

/// Shares of failing attempts that are tried.
const SHARES: u32 = 16;
/// Calls that measure what guards let through.
const MEASURED_CALLS: u32 = 1_000;

impl System {
    /// Returns the loop gain of each service, in their order.
    ///
    /// An edge with guards is measured: a process makes a thousand calls whose attempts fail at random, and the guards
    /// decide as in a run. A cache counts as cold if a trigger empties it, and as warm otherwise.
    #[must_use]
    pub fn loop_gains(&self) -> Vec<LoopGain> {
        let capacities: Vec<_> = self.layout().services.iter().map(|service| service.capacity).collect();
        (0..self.settings.services.len()).map(|service| self.loop_gain(service, &capacities)).collect()
    }

    fn loop_gain(&self, service: usize, capacities: &[f64]) -> LoopGain {
        let order = self.top_down();
        let gain = |mended| Load { system: self, order: &order, capacities, service, mended }.largest();
        let plain = gain(None);
        // Edges far from the users are tried first, and a later one must be better.
        let depth = |edge: usize| order.iter().position(|&at| at == self.graph.to[edge]);
        let mut edges: Vec<_> = (0..self.settings.edges.len()).collect();
        edges.sort_by_key(|&edge| core::cmp::Reverse(depth(edge)));
        let mended = edges.into_iter().map(|edge| (edge, gain(Some(edge))));
        let (mut first, mut after) = (None, plain);
        for (edge, gain) in mended {
            if gain < after * (1.0 - 1e-9) {
                (first, after) = (Some(edge), gain);
            }
        }
        let is_closed = self.can_be_late(service, capacities[service]);
        LoopGain { service, gain: plain, is_closed, mend_first: first, gain_after_mending: after }
    }

    /// Returns the services, callers before those that they call.
    fn top_down(&self) -> Vec<usize> {
        let mut order = Vec::new();
        let mut ready = vec![self.graph.to[self.graph.entry]];
        let mut waiting: Vec<_> = (0..self.settings.services.len()).map(|at| self.callers(at).count()).collect();
        while let Some(service) = ready.pop() {
            order.push(service);
            for &edge in &self.graph.out[service] {
                let to = self.graph.to[edge];
                waiting[to] -= 1;
                if waiting[to] == 0 {
                    ready.push(to);
                }
            }
        }
        order
    }

    /// Returns the edges that lead to a service.
    fn callers(&self, service: usize) -> impl Iterator<Item = usize> + '_ {
        self.graph.to.iter().enumerate().filter(move |&(_, &to)| to == service).map(|(edge, _)| edge)
    }

    fn can_be_late(&self, service: usize, capacity: f64) -> bool {
        let settings = &self.settings.services[service];
        let longest = f64::from(settings.backlog) / capacity;
        self.callers(service).any(|edge| {
            let is_entry = edge == self.graph.entry;
            let edge = &self.settings.edges[edge];
            let on_the_way = (edge.one_way[0] + edge.one_way[1]).as_secs_f64();
            let is_late = settings.backlog == Service::MAX_BACKLOG || longest + on_the_way > edge.timeout.as_secs_f64();
            // Hopeless work is dropped one service ahead: callers behind another service may still wait in vain.
            is_late && !(is_entry && settings.stale == StaleWork::DropHopeless)
        })
    }
}

/// The load of one service if some of its attempts fail.
struct Load<'a> {
    system: &'a System,
    order: &'a [usize],
    /// What each service can serve in a second.
    capacities: &'a [f64],
    service: usize,
    /// An edge that makes one attempt per call.
    mended: Option<usize>,
}

/// A figure for calls and attempts that no retry has caused, and for the others.
type Lineages = [f64; 2];

impl Load<'_> {
    fn largest(&self) -> f64 {
        let shares = (0..=SHARES).map(|step| f64::from(step) / f64::from(SHARES));
        let capacity = self.capacities[self.service];
        shares.map(|share| self.at(share) / capacity).fold(0.0, f64::max)
    }

    /// Returns the attempts per second if this share of them fails.
    fn at(&self, share: f64) -> f64 {
        let system = self.system;
        let count = system.settings.services.len();
        // From the bottom: how often an attempt at each service fails.
        let mut fails = vec![[0.0; 2]; count];
        let mut calls: Vec<[Calls; 2]> = vec![[Calls::default(); 2]; system.settings.edges.len()];
        for &service in self.order.iter().rev() {
            let mut served = [1.0 - if service == self.service { share } else { 0.0 }; 2];
            for &edge in &system.graph.out[service] {
                calls[edge] = self.calls(edge, fails[system.graph.to[edge]]);
                let number = system.settings.edges[edge].calls as i32;
                for (served, calls) in served.iter_mut().zip(&calls[edge]) {
                    *served *= (1.0 - calls.failed * self.miss(edge)).powi(number);
                }
            }
            fails[service] = served.map(|served| 1.0 - served);
        }
        let entry = system.graph.entry;
        calls[entry] = self.calls(entry, fails[system.graph.to[entry]]);
        // From the top: how many attempts come to each service.
        let mut loads: Vec<Lineages> = vec![[0.0; 2]; count];
        let users = [system.settings.rate * self.miss(entry), 0.0];
        send(users, &calls[entry], &mut loads[system.graph.to[entry]]);
        for &service in self.order {
            // A service answers no more attempts than it can serve; the rest is refused, or waits.
            let load: f64 = loads[service].iter().sum();
            let served = (self.capacities[service] / load).min(1.0);
            let mut attempts = loads[service].map(|attempts| attempts * served);
            for &edge in &system.graph.out[service] {
                let settings = &system.settings.edges[edge];
                let mut made = [0.0; 2];
                for (lineage, made) in made.iter_mut().enumerate() {
                    let served = 1.0 - calls[edge][lineage].failed * self.miss(edge);
                    let reached = served.powi(settings.calls as i32);
                    // In sequence, a failed call is the last.
                    let number = match settings.order {
                        CallOrder::Parallel => f64::from(settings.calls),
                        CallOrder::Sequence => (0..settings.calls).map(|nth| served.powi(nth as i32)).sum(),
                    };
                    *made = attempts[lineage] * number * self.miss(edge);
                    attempts[lineage] *= reached;
                }
                send(made, &calls[edge], &mut loads[system.graph.to[edge]]);
            }
        }
        loads[self.service].iter().sum()
    }

    /// Returns the share of the calls over an edge that its cache does not serve.
    fn miss(&self, edge: usize) -> f64 {
        let settings = &self.system.settings;
        let is_cold = settings.triggers.iter().any(|trigger| trigger.fault == Fault::Cold);
        match settings.edges[edge].cache {
            Some(cache) if !is_cold => 1.0 - cache.hot,
            _ => 1.0,
        }
    }

    /// Returns what calls over an edge make of attempts that fail with these probabilities.
    fn calls(&self, edge: usize, fails: Lineages) -> [Calls; 2] {
        [0, 1].map(|lineage| {
            let most = if self.mended == Some(edge) { 1 } else { self.most_attempts(edge, lineage == 1) };
            let settings = &self.system.settings.edges[edge];
            if settings.guards.is_some() && most > 1 {
                return self.measured(edge, most, fails[lineage]);
            }
            let (mut attempts, mut failed) = (1.0, fails[lineage]);
            for _ in 1..most.min(1_000) {
                attempts += failed;
                failed *= fails[1];
            }
            Calls { attempts, failed }
        })
    }

    /// Returns the most attempts of a call over an edge.
    fn most_attempts(&self, edge: usize, is_retry: bool) -> u32 {
        let settings = &self.system.settings.edges[edge];
        let most = settings.policy.max_attempts().map_or(u32::MAX, |most| most.get());
        let Some(from) = self.system.graph.caller(edge) else { return most };
        let stands_down = match settings.nested {
            NestedCalls::Multiply => false,
            NestedCalls::StandDown => true,
            NestedCalls::FirstOnly => is_retry,
        };
        if stands_down {
            return 1;
        }
        // Without the deadline, attempts go on after their callers have given up.
        if self.system.settings.services[from].stale == StaleWork::Done || !settings.hands_on_deadline {
            return most;
        }
        let limits = self.system.callers(from).map(|caller| self.system.settings.edges[caller].timeout);
        let longest = limits.max().unwrap_or_default().as_secs_f64();
        most.min((longest / settings.timeout.as_secs_f64()).ceil() as u32).max(1)
    }

    /// Measures the calls of a process with guards, half of them after the guards have seen the other half.
    fn measured(&self, edge: usize, most: u32, fails: f64) -> Calls {
        let settings = &self.system.settings.edges[edge];
        let Some(guards) = settings.guards.as_ref().map(|new| new(Seed::new(0))) else { return Calls::default() };
        let gap = f64::from(self.system.owners(edge)) / self.system.settings.rate * 1e9;
        let mut random = Stream::new(Seed::new(1));
        let (mut attempts, mut failed) = (0_u32, 0_u32);
        for nth in 0..MEASURED_CALLS {
            let (mut state, seed) = (RetryState::new(), Seed::new(random.bits()));
            let (mut permits, mut now) = (Permits::NONE, (f64::from(nth) * gap) as u64);
            let (mut made, mut is_served) = (0, false);
            while made < most {
                let mut retry = RetryMachine::new(&settings.policy, &mut state, seed);
                let guards = guards.guards().nested(stagger_core::NestedRetries::Allow);
                let Ok(begun) = retry.begin(permits, || instant(now), &guards) else { break };
                made += 1;
                let outcome = if random.chance(fails) { Outcome::TRANSIENT } else { Outcome::Success };
                match retry.decide(outcome, begun, || instant(now), &guards) {
                    Decision::Retry { after, permit, .. } => {
                        permits = permit;
                        now = now.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX));
                    }
                    decision => {
                        is_served = decision == Decision::Done;
                        break;
                    }
                }
            }
            if nth >= MEASURED_CALLS / 2 {
                attempts += made;
                failed += u32::from(!is_served);
            }
        }
        let half = f64::from(MEASURED_CALLS / 2);
        Calls { attempts: f64::from(attempts) / half, failed: f64::from(failed) / half }
    }
}

/// Calls over an edge: how many attempts each makes, and the share that fails.
#[derive(Clone, Copy, Default)]
struct Calls {
    attempts: f64,
    failed: f64,
}

/// Adds the attempts of calls, most of which are retries from the second attempt on.
fn send(made: Lineages, calls: &[Calls; 2], load: &mut Lineages) {
    let first = calls[0].attempts.min(1.0);
    load[0] += made[0] * first;
    load[1] += made[0] * (calls[0].attempts - first) + made[1] * calls[1].attempts;
}
