use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::emit::gauge;
use super::watch::{BreakerWatch, ControlWatches};
use crate::breaker::CircuitBreaker;
use crate::control::RetryControls;
use crate::{Budget, Instant, admission::Admission, time::Clock, time::SystemClock};

/// Collects what guards are and have counted, when it is asked to: [`record`](Self::record) it at each scrape, or once a
/// second. The [contract](crate::observe#metrics) has the names.
///
/// With the feature `tracing` it also makes one event for each change that it finds: a breaker's of its state, an operator control's
/// of its setting; never one for being asked.
///
/// Each guard is collected under a name that the program chooses: the target's, as the [`Retrier`](crate::Retrier) was
/// given it. Two of one kind under one name would overwrite each other's numbers. Guards are kept alive, so of those that
/// come and go, such as one for each customer, name the few that matter.
///
/// ```
/// use std::sync::Arc;
/// use stagger::breaker::CircuitBreaker;
/// use stagger::budget::Tokens;
/// use stagger::control::RetryControls;
/// use stagger::observe::Gauges;
///
/// let (controls, budget) = (RetryControls::from_env()?, Arc::new(Tokens::new()));
/// let breaker = Arc::new(CircuitBreaker::new(stagger::seed()));
/// let gauges = Gauges::new().controls(&controls).budget("api", budget).breaker("api", breaker);
/// // At each scrape:
/// gauges.record();
/// # Ok::<(), stagger::control::ControlError>(())
/// ```
pub struct Gauges<C = SystemClock> {
    clock: C,
    watched: Mutex<Vec<Watch>>,
}

type Watch = Box<dyn FnMut(Instant) + Send>;

impl Gauges {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(SystemClock)
    }
}

impl Default for Gauges {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Clock> Gauges<C> {
    /// By this clock, which is to be the one that the guards are asked by.
    #[must_use]
    pub const fn with_clock(clock: C) -> Self {
        Self { clock, watched: Mutex::new(Vec::new()) }
    }

    /// What is left of this budget.
    #[must_use]
    pub fn budget(self, target: &str, budget: Arc<dyn Budget>) -> Self {
        let target = target.to_owned();
        self.watch(move |_| {
            let left = budget.available().map_or(f64::NAN, |left| left as f64);
            gauge("stagger_budget_left", &target, None, left);
        })
    }

    /// The state of this breaker, and what it has refused.
    #[must_use]
    pub fn breaker(self, target: &str, breaker: Arc<CircuitBreaker>) -> Self {
        let mut watch = BreakerWatch::new(target, breaker);
        self.watch(move |now| watch.record(now))
    }

    /// Where these operator controls are, and what they have refused: of every target, also of those that join later.
    #[must_use]
    pub fn controls(self, controls: &RetryControls) -> Self {
        let mut watches = ControlWatches::new(controls.clone());
        self.watch(move |_| watches.record())
    }

    /// How this admission stands.
    #[must_use]
    pub fn admission(self, target: &str, admission: Arc<Admission>) -> Self {
        let target = target.to_owned();
        self.watch(move |now| {
            let seen = admission.snapshot(now);
            gauge("stagger_admission_waiting", &target, None, seen.reserved as f64);
            gauge("stagger_admission_wait_seconds", &target, None, seen.next_in.as_secs_f64());
            gauge("stagger_admission_room", &target, None, seen.available as f64);
        })
    }

    /// Collects everything once. The clock is read once; calls from several threads wait for each other.
    pub fn record(&self) {
        let now = self.clock.now();
        // Each watch is whole between two calls, also if a recorder has panicked.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|watch| watch(now));
    }

    fn watch(mut self, watch: impl FnMut(Instant) + Send + 'static) -> Self {
        self.watched.get_mut().unwrap_or_else(PoisonError::into_inner).push(Box::new(watch));
        self
    }
}

impl<C> fmt::Debug for Gauges<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("Gauges").field("watched", &watched).finish_non_exhaustive()
    }
}
