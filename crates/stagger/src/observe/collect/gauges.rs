//! The collection of guards whose state is recorded at each scrape.

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use stagger_core::Instant;
#[cfg(feature = "admission")]
use stagger_core::admission::Admission;
use stagger_core::breaker::CircuitBreaker;
use stagger_core::guard::Guard;
use stagger_core::quiet::QuietPeriod;

use super::collectors::{BreakerCollector, ControlCollector};
#[cfg(feature = "admission")]
use super::record::gauge;
use super::sums::{record_guard, record_keyed, record_quiet, record_targets};
use crate::control::RetryControls;
use crate::control::keyed::Keyed;
use crate::retrier::handle::Retrier;
use crate::retrier::target::OwnGuard;
use crate::time::{Clock, SystemClock};

/// Collects the state and counts of guards. Call [`record`](Self::record) at each scrape, or once a second. The names
/// are in the [contract](crate::observe#metrics).
///
/// With the feature `tracing`, it also emits an event for each change it finds in the state of a breaker or the setting
/// of an operator control. It emits none if nothing has changed.
///
/// Each guard is collected under a name that the program chooses, usually the target's name as passed to the
/// [`Retrier`](crate::Retrier). Two guards of one kind under one name overwrite each other's values. Guards are kept
/// alive, so of those that come and go, add only the few that matter; those in a [`Keyed`] are added all at once.
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
/// let gauges = Gauges::new().controls(&controls).guard("api", budget).breaker("api", breaker);
/// // At each scrape:
/// gauges.record();
/// # Ok::<(), stagger::control::ControlError>(())
/// ```
pub struct Gauges<C = SystemClock> {
    clock: C,
    collectors: Mutex<Vec<Collector>>,
}

type Collector = Box<dyn FnMut(Instant) + Send>;

impl Gauges {
    /// Creates an empty collection, on the system's clock.
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
    /// Creates an empty collection on this clock, which must be the one that the guards use.
    #[must_use]
    pub const fn with_clock(clock: C) -> Self {
        Self { clock, collectors: Mutex::new(Vec::new()) }
    }

    /// Adds a guard of any kind: whether it lets attempts start now, and how many retries it has left.
    #[must_use]
    pub fn guard(self, target: &str, guard: Arc<dyn Guard>) -> Self {
        let target = target.to_owned();
        self.collector(move |now| record_guard(&target, &*guard, now))
    }

    /// Adds a breaker: its state, and the calls it has rejected.
    #[must_use]
    pub fn breaker(self, target: &str, breaker: Arc<CircuitBreaker>) -> Self {
        let mut collector = BreakerCollector::new(target, breaker);
        self.collector(move |now| collector.record(now))
    }

    /// Adds a quiet period: whether it holds calls now, how many wait, and what has become of the calls that it held.
    #[must_use]
    pub fn quiet_period(self, target: &str, quiet: Arc<QuietPeriod>) -> Self {
        let target = target.to_owned();
        self.collector(move |now| record_quiet(&target, &quiet, now))
    }

    /// Adds guards by key: how many there are, how many of them let no attempt start now, how many have no retry left,
    /// and the fewest retries that one of them has left. The keys are not labels, since they may come from outside the
    /// program; to see them, use [`Keyed::for_each`].
    ///
    /// The guard that keys without a place share is included, but not as one of the keys.
    #[must_use]
    pub fn keyed<K, G>(self, target: &str, guards: Arc<Keyed<K, G>>) -> Self
    where
        K: Send + Sync + 'static,
        G: Guard + 'static,
    {
        let target = target.to_owned();
        self.collector(move |now| record_keyed(&target, &guards, now))
    }

    /// Adds the guards that this retrier makes for each of its targets, such as the origins of an HTTP client, under
    /// the retrier's name, as [`keyed`](Self::keyed) does.
    ///
    /// Pass the retrier that the client is given, or a clone of it, after its name, guards and controls were set: the
    /// guards are not shared with an earlier version of it. A retrier without guards of its own for each target records
    /// nothing. With [late targets](crate::PollRetry::late_target), the keys are the targets that have failed lately.
    ///
    /// ```
    /// use stagger::budget::Tokens;
    /// use stagger::observe::Gauges;
    /// use stagger::{Policy, Retrier};
    ///
    /// let api = Retrier::new(Policy::DEFAULT).named("api").budget(Tokens::new());
    /// let gauges = Gauges::new().targets(&api);
    /// // Pass `api` to the client, and at each scrape:
    /// gauges.record();
    /// ```
    #[must_use]
    pub fn targets(self, retrier: &Retrier) -> Self {
        let Some(targets) = retrier.shared().targets.clone() else { return self };
        let is_own: Vec<_> = retrier.shared().own.iter().map(OwnGuard::is_by_target).collect();
        let name = retrier.name().to_owned();
        self.collector(move |now| record_targets(&name, &targets, &is_own, now))
    }

    /// Adds operator controls: the setting of every target and the retries it has rejected, including targets
    /// registered later.
    #[must_use]
    pub fn controls(self, controls: &RetryControls) -> Self {
        let mut collector = ControlCollector::new(controls.clone());
        self.collector(move |_| collector.record())
    }

    /// Adds an admission: its reservations and free capacity.
    #[cfg(feature = "admission")]
    #[must_use]
    pub fn admission(self, target: &str, admission: Arc<Admission>) -> Self {
        let target = target.to_owned();
        self.collector(move |now| {
            let seen = admission.snapshot(now);
            gauge("stagger_admission_reserved", &target, None, seen.reserved as f64);
            gauge("stagger_admission_wait_seconds", &target, None, seen.next_in.as_secs_f64());
            gauge("stagger_admission_available", &target, None, seen.available as f64);
        })
    }

    /// Records all values once. The clock is read once. Concurrent calls wait for each other.
    pub fn record(&self) {
        let now = self.clock.now();
        // Each collector is consistent between two calls, even if a recorder has panicked.
        self.collectors.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().for_each(|collector| collector(now));
    }

    fn collector(mut self, collector: impl FnMut(Instant) + Send + 'static) -> Self {
        self.collectors.get_mut().unwrap_or_else(PoisonError::into_inner).push(Box::new(collector));
        self
    }
}

impl<C> fmt::Debug for Gauges<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let collectors = self.collectors.lock().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("Gauges").field("collectors", &collectors).finish_non_exhaustive()
    }
}
