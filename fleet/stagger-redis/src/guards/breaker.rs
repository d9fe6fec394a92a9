use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use stagger::Instant;
use stagger::breaker::{BreakerState, CircuitBreaker, Evidence, TransitionCause};
use stagger::guard::{Answer, Ask, End, Guard, Now, Permit};

use crate::error::{SettingsError, SettingsProblem};
use crate::keys::breaker_key;
use crate::registry::{FleetHandle, GuardHandle, Registry, Target};

/// A circuit breaker that is advised by those of the other processes: if enough of them are open, this one needs half
/// of the evidence.
///
/// ```text
/// advised = processes whose breaker is open ≥ max(2, a tenth of all), within ten seconds
/// ```
///
/// Each process has a [`CircuitBreaker`], which alone decides. What another process sees may be its own fault, or that
/// of its path to the server, so its breaker does not open this one: advice is weighed with the own view, as
/// [`Evidence::Half`]. Half of the failures in a row, or of the calls in a window, then open the breaker; the ratios
/// stay. A process whose own calls succeed keeps its breaker closed, whatever the others say, and one process alone
/// advises nobody.
///
/// - counts for the others: a breaker that its own rules or probes have opened, until it closes.
/// - does not count: one that half of the evidence has opened, until a probe fails; one that an operator holds open:
///   advice cannot keep itself alive.
/// - begins, and ends: with the next report, at most a second after the quorum is reached, or lost.
/// - a process dies: its breaker counts for ten more seconds.
/// - without the store: there is no advice, and each process has its own breaker.
///
/// In virtual time, of twenty processes two have 50 calls per second, and eighteen one in two seconds. When the server
/// dies, the last breaker is open after 6 s instead of 10 s, and 63 calls of the eighteen fail instead of 90, probes
/// included. If two of twenty cannot reach a server that works, and one call in a hundred of the others fails, no call
/// of these is rejected; if advice let a breaker open on its first failure, a quarter would be.
///
/// Use it where some processes call rarely, so that they would find out late. It does not help before the first
/// processes have found out by themselves.
///
/// Clones share one breaker, and so do all of a fleet with the same target.
///
/// # Cost
///
/// As of [`CircuitBreaker`], and one load more to record a result.
#[derive(Clone)]
pub struct SharedBreaker {
    handle: Arc<GuardHandle<BreakerTarget>>,
}

/// Builds a [`SharedBreaker`]. Created by [`Fleet::breaker`](crate::Fleet::breaker).
#[derive(Debug)]
#[must_use]
pub struct SharedBreakerBuilder<'a> {
    fleet: &'a Arc<FleetHandle>,
    namespace: &'a str,
    target: &'a str,
    local: Option<CircuitBreaker>,
}

/// A snapshot of a [`SharedBreaker`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedBreakerSnapshot {
    /// How many processes had their breaker open at the last reply of the store.
    pub open: u64,
    /// Whether these are enough, so that the breaker of this process needs half of the evidence.
    pub is_advised: bool,
}

impl SharedBreaker {
    /// Returns the breaker of this process, for metrics, snapshots and commands.
    #[must_use]
    pub fn local(&self) -> &Arc<CircuitBreaker> {
        &self.handle.target.local
    }

    /// Returns a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> SharedBreakerSnapshot {
        let opinion = &self.handle.target.opinion;
        SharedBreakerSnapshot { open: opinion.open(), is_advised: opinion.is_advised() }
    }

    #[cold]
    fn note(&self) {
        if self.handle.target.note() {
            self.handle.fleet.0.wake.notify_one();
        }
    }
}

impl fmt::Debug for SharedBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BreakerTarget { name, local, .. } = &*self.handle.target;
        let SharedBreakerSnapshot { open, is_advised } = self.snapshot();
        let mut debug = f.debug_struct("SharedBreaker");
        debug.field("target", name).field("open", &open).field("is_advised", &is_advised).field("local", local).finish()
    }
}

impl Guard for SharedBreaker {
    fn name(&self) -> &'static str {
        self.local().name()
    }

    #[inline]
    fn ask(&self, ask: Ask, held: Permit, now: &dyn Now) -> Answer {
        self.local().ask(ask, held, now)
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        self.local().retry_in(now)
    }

    fn would_refuse(&self, after: Duration, latest: Option<Instant>, now: &dyn Now) -> bool {
        self.local().would_refuse(after, latest, now)
    }

    #[inline]
    fn settle(&self, permit: Permit, end: End<'_>, now: &dyn Now) {
        self.local().settle(permit, end, now);
        if self.handle.target.has_changed() {
            self.note();
        }
    }

    fn is_at_rest(&self, now: &dyn Now) -> bool {
        self.local().is_at_rest(now)
    }
}

impl<'a> SharedBreakerBuilder<'a> {
    pub(crate) const fn new(fleet: &'a Arc<FleetHandle>, namespace: &'a str, target: &'a str) -> Self {
        Self { fleet, namespace, target, local: None }
    }

    /// Sets the breaker of this process, with its rules. If the target has one in this process already, that one stays.
    /// Default: [`CircuitBreaker::new`], which opens after five failures in a row.
    pub fn local(self, breaker: CircuitBreaker) -> Self {
        Self { local: Some(breaker), ..self }
    }

    /// Creates the breaker, closed.
    ///
    /// # Errors
    /// A target without a name or with one of more than 128 bytes; the fleet has 64 guards.
    pub fn build(self) -> Result<SharedBreaker, SettingsError> {
        let Self { fleet, namespace, target, local } = self;
        SettingsError::check(SettingsProblem::of_name(target))?;
        let target = BreakerTarget {
            name: target.into(),
            key: breaker_key(namespace, target),
            local: Arc::new(local.unwrap_or_else(|| CircuitBreaker::new(stagger::seed()))),
            opinion: Opinion::default(),
            noted: AtomicU64::new(0),
        };
        Ok(SharedBreaker { handle: Registry::hold(fleet, target)? })
    }
}

/// One breaker of a fleet in this process.
#[derive(Debug)]
pub(crate) struct BreakerTarget {
    pub(crate) name: Box<str>,
    pub(crate) key: String,
    pub(crate) local: Arc<CircuitBreaker>,
    pub(crate) opinion: Opinion,
    /// The changes of state of the breaker when it was looked at last.
    pub(crate) noted: AtomicU64,
}

impl Target for BreakerTarget {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_like(&self, _: &Self) -> bool {
        true
    }
}

impl BreakerTarget {
    /// Notes the state of the breaker, and returns whether to report it early.
    pub(crate) fn note(&self) -> bool {
        self.noted.store(self.local.transitions(), Ordering::Relaxed);
        let state = self.local.state();
        // The cause is known without the clock. One of a state that has begun meanwhile is noted again.
        let cause = match state {
            BreakerState::Open => self.local.snapshot(&Instant::ZERO).cause,
            _ => TransitionCause::Command,
        };
        self.opinion.note(state, cause)
    }

    /// Returns whether the state has changed since it was noted. Two relaxed loads.
    fn has_changed(&self) -> bool {
        self.noted.load(Ordering::Relaxed) != self.local.transitions()
    }
}

/// Applies advice to the breaker of this process.
pub(crate) fn apply(local: &CircuitBreaker, changed: Changed) {
    local.set_evidence(match changed {
        Changed::Advised => Evidence::Half,
        Changed::NotAdvised => Evidence::Full,
    });
}

/// What one process says about its breaker, and what the fleet says: what its calls and the background task share.
#[derive(Debug, Default)]
pub(crate) struct Opinion {
    /// Whether the breaker is open for reasons of its own.
    is_open: AtomicBool,
    /// What the last report said.
    reported: AtomicBool,
    /// How many processes have theirs open, by the last reply.
    open: AtomicU64,
    is_advised: AtomicBool,
}

/// The store's reply about one breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Advice {
    /// How many processes have their breaker open.
    pub(crate) open: u64,
    /// Whether these are enough to advise the others.
    pub(crate) is_enough: bool,
}

/// What has changed for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Advised,
    NotAdvised,
}

impl Opinion {
    /// Notes the state of the breaker, and returns whether to report it early.
    ///
    /// A breaker that opened on advice says nothing about the server that others do not know, and one that an operator
    /// holds open says nothing at all: if they counted, advice could keep itself alive. A probe that fails is evidence
    /// of its own.
    pub(crate) fn note(&self, state: BreakerState, cause: TransitionCause) -> bool {
        let is_open = match (state, cause) {
            (BreakerState::Open, TransitionCause::Advised | TransitionCause::Command) => false,
            (BreakerState::Open, _) => true,
            (BreakerState::HalfOpen, _) => return self.has_news(),
            _ => false,
        };
        self.is_open.store(is_open, Ordering::Relaxed);
        self.has_news()
    }

    /// Returns whether the next report says something else than the last one.
    pub(crate) fn has_news(&self) -> bool {
        self.is_open.load(Ordering::Relaxed) != self.reported.load(Ordering::Relaxed)
    }

    /// Returns what to report: whether the breaker is open for reasons of its own.
    pub(crate) fn claim(&self) -> bool {
        let is_open = self.is_open.load(Ordering::Relaxed);
        self.reported.store(is_open, Ordering::Relaxed);
        is_open
    }

    /// Takes over what the store replied, and returns what has changed.
    pub(crate) fn on_reply(&self, advice: Advice) -> Option<Changed> {
        self.open.store(advice.open, Ordering::Relaxed);
        let was = self.is_advised.swap(advice.is_enough, Ordering::Relaxed);
        match (was, advice.is_enough) {
            (false, true) => Some(Changed::Advised),
            (true, false) => Some(Changed::NotAdvised),
            _ => None,
        }
    }

    /// Forgets the advice, because the store is lost.
    pub(crate) fn on_loss(&self) -> Option<Changed> {
        self.on_reply(Advice { open: 0, is_enough: false })
    }

    /// Returns how many processes have their breaker open, by the last reply.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns whether this process is advised that the server is down.
    pub(crate) fn is_advised(&self) -> bool {
        self.is_advised.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breaker_that_is_open_for_reasons_of_its_own_is_reported_until_it_closes() {
        use BreakerState::{Closed, ForcedOpen, HalfOpen, Open};
        use TransitionCause::{Advised, Command, Consecutive, OpenTime, Probes};
        let opinion = Opinion::default();
        for (state, cause, is_news, want) in [
            (Closed, Command, false, false),
            (Open, Advised, false, false),
            (HalfOpen, OpenTime, false, false),
            // The probe has failed.
            (Open, Probes, true, true),
            (HalfOpen, OpenTime, false, true),
            (Closed, Probes, true, false),
            (Open, Consecutive, true, true),
            (Open, Consecutive, false, true),
            (ForcedOpen, Command, true, false),
        ] {
            assert_eq!(opinion.note(state, cause), is_news, "{state:?} {cause:?}");
            assert_eq!(opinion.claim(), want, "{state:?} {cause:?}");
            assert!(!opinion.has_news());
        }
    }

    #[test]
    fn advice_begins_and_ends_once_and_is_lost_with_the_store() {
        let opinion = Opinion::default();
        let enough = Advice { open: 2, is_enough: true };
        assert_eq!([opinion.on_reply(enough), opinion.on_reply(enough)], [Some(Changed::Advised), None]);
        assert_eq!((opinion.open(), opinion.is_advised()), (2, true));
        assert_eq!([opinion.on_loss(), opinion.on_loss()], [Some(Changed::NotAdvised), None]);
        assert_eq!((opinion.open(), opinion.is_advised()), (0, false));
    }
}
