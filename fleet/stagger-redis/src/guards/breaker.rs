use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use stagger::breaker::{BreakerState, CircuitBreaker, Evidence, TransitionCause};
use stagger::guard::{Breaker, BreakerOpen, BreakerPermit, Enforcement, Now};
use stagger::{Instant, Outcome};

use crate::error::{SettingsError, SettingsProblem};
use crate::protocol::opinion::{Changed, Opinion};
use crate::store::keys::breaker_key;
use crate::target::{Alive, BreakerTarget, Held, Registry};

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
/// | | |
/// |---|---|
/// | counts for the others | a breaker that its own rules or probes have opened, until it closes |
/// | does not count | one that half of the evidence has opened, until a probe fails; one that an operator holds open: advice cannot keep itself alive |
/// | begins, and ends | with the next report, at most a second after the quorum is reached, or lost |
/// | a process dies | its breaker counts for ten more seconds |
/// | without the store | there is no advice, and each process has its own breaker |
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
    held: Arc<Held<BreakerTarget>>,
}

/// Builds a [`SharedBreaker`]. Created by [`Fleet::breaker`](crate::Fleet::breaker).
#[derive(Debug)]
#[must_use]
pub struct SharedBreakerBuilder<'a> {
    alive: &'a Arc<Alive>,
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
        &self.held.target.local
    }

    /// Returns a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> SharedBreakerSnapshot {
        let opinion = &self.held.target.opinion;
        SharedBreakerSnapshot { open: opinion.open(), is_advised: opinion.is_advised() }
    }

    #[cold]
    fn note(&self) {
        if self.held.target.note() {
            self.held.alive.0.wake.notify_one();
        }
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

impl fmt::Debug for SharedBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BreakerTarget { name, local, .. } = &*self.held.target;
        let SharedBreakerSnapshot { open, is_advised } = self.snapshot();
        let mut debug = f.debug_struct("SharedBreaker");
        debug.field("target", name).field("open", &open).field("is_advised", &is_advised).field("local", local).finish()
    }
}

impl Breaker for SharedBreaker {
    #[inline]
    fn admit(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen> {
        self.local().admit(now)
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        self.local().retry_in(now)
    }

    fn would_reject(&self, after: Duration, now: &dyn Now) -> bool {
        self.local().would_reject(after, now)
    }

    #[inline]
    fn record(&self, permit: BreakerPermit, outcome: &Outcome, now: &dyn Now) {
        self.local().record(permit, outcome, now);
        if self.held.target.has_changed() {
            self.note();
        }
    }

    fn set_enforcement(&self, enforcement: Enforcement) {
        self.local().set_enforcement(enforcement);
    }

    fn is_at_rest(&self, now: &dyn Now) -> bool {
        self.local().is_at_rest(now)
    }
}

impl<'a> SharedBreakerBuilder<'a> {
    pub(crate) const fn new(alive: &'a Arc<Alive>, namespace: &'a str, target: &'a str) -> Self {
        Self { alive, namespace, target, local: None }
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
        let Self { alive, namespace, target, local } = self;
        SettingsError::check(SettingsProblem::of_name(target))?;
        let target = BreakerTarget {
            name: target.into(),
            key: breaker_key(namespace, target),
            local: Arc::new(local.unwrap_or_else(|| CircuitBreaker::new(stagger::seed()))),
            opinion: Opinion::default(),
            noted: AtomicU64::new(0),
        };
        Ok(SharedBreaker { held: Registry::hold(alive, target)? })
    }
}
