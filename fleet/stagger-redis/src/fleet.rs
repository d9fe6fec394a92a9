use core::fmt;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use stagger::admission::Secret;
use stagger::control::RetryControls;
use tokio::runtime::Handle;

use crate::connection::{Address, Connection};
use crate::error::{SettingsError, SettingsProblem};
use crate::guards::admission::SharedAdmissionBuilder;
use crate::guards::breaker::SharedBreakerBuilder;
use crate::guards::quiet::SharedQuietPeriodBuilder;
use crate::guards::tokens::SharedTokensBuilder;
use crate::guards::window::SharedWindowBuilder;
use crate::observe::{FleetEvent, Listener};
use crate::registry::{FleetHandle, Registry};
use crate::task::{Task, TaskSettings};
use stagger_lease::claim::Timing;
use stagger_lease::process::RESPONSE_TIMEOUT;

/// The connection of this process to the other processes of its fleet, through a store.
///
/// It owns one background task, which makes at most `T + 3` calls of the store in T seconds, and one when it ends,
/// whatever the load and the number of targets. Clones share it. The task ends, and hands all leases back, when the
/// last clone and the last guard of the fleet are dropped.
///
/// The store may be away at any time, also at the start.
#[derive(Clone)]
pub struct Fleet {
    fleet: Arc<FleetHandle>,
    namespace: Arc<str>,
}

/// How long a process that never had a reply waits for one.
const PATIENCE: Duration = Duration::from_micros(Timing::DEFAULT.patience);

/// The length of a lease.
const LEASE: Duration = Duration::from_micros(Timing::DEFAULT.lease);

/// Builds a [`Fleet`].
#[must_use]
pub struct FleetBuilder<'a> {
    address: Address<'a>,
    processes: u32,
    namespace: &'a str,
    patience: Duration,
    reply_limit: Duration,
    listener: Option<Listener>,
}

/// A snapshot of a [`Fleet`], for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetSnapshot {
    /// Whether this process has leases. If not, it uses its local shares, or waits for the first reply.
    pub is_leased: bool,
    /// The largest number of processes that the store has seen; 0 before the first reply.
    pub processes: u64,
    /// Reports to the store, answered or not.
    pub reports: u64,
    /// The number of the last report that was answered; reports are numbered from 1.
    pub answered: u64,
    /// Reports without a reply, and connections that could not be opened.
    pub failures: u64,
    /// How many times the store was lost.
    pub losses: u64,
}

/// What a process knows of the operator controls of its fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ControlsSnapshot {
    /// The version of the last ones; 0 if the store has had none yet.
    pub version: u64,
    /// Whether they are in force. If not, there are none, this process cannot apply them, or they have ended.
    pub is_obeyed: bool,
    /// How long ago they were set.
    pub age: Option<Duration>,
    /// How long ago the store last confirmed them; `None` before the first reply.
    pub unconfirmed: Option<Duration>,
    /// How long they stay in force; `None` without an end.
    pub ends_in: Option<Duration>,
}

impl Fleet {
    /// Creates a builder. `url` is the address of the store, such as `redis://host:6379/0`, and `processes` the number
    /// of processes that usually run: if the store is away, each uses that part of every budget. Too small a number
    /// lets the fleet exceed its budgets then, too large a number wastes a part of them.
    pub const fn builder(url: &str, processes: u32) -> FleetBuilder<'_> {
        FleetBuilder::new(Address::Server(url), processes)
    }

    /// Creates a builder for the primary that sentinels name: `sentinels` are their addresses, and `service` is the
    /// name of the service in the form of a URL, which also says how to connect to its servers, such as
    /// `redis://:password@mymaster/0`. For `processes`, see [`builder`](Self::builder).
    #[cfg(feature = "sentinel")]
    #[cfg_attr(docsrs, doc(cfg(feature = "sentinel")))]
    pub const fn sentinel<'a>(sentinels: &'a [&'a str], service: &'a str, processes: u32) -> FleetBuilder<'a> {
        FleetBuilder::new(Address::Sentinel { sentinels, service }, processes)
    }

    /// Creates a builder for a cluster: `nodes` are the addresses of some of its nodes. All keys of a namespace are in
    /// one slot. For `processes`, see [`builder`](Self::builder).
    #[cfg(feature = "cluster")]
    #[cfg_attr(docsrs, doc(cfg(feature = "cluster")))]
    pub const fn cluster<'a>(nodes: &'a [&'a str], processes: u32) -> FleetBuilder<'a> {
        FleetBuilder::new(Address::Cluster(nodes), processes)
    }

    /// Creates the builder of a token bucket for `target` that the fleet shares.
    pub fn tokens<'a>(&'a self, target: &'a str) -> SharedTokensBuilder<'a> {
        SharedTokensBuilder::new(&self.fleet, &self.namespace, target)
    }

    /// Creates the builder of a window for `target` that the fleet shares.
    pub fn window<'a>(&'a self, target: &'a str) -> SharedWindowBuilder<'a> {
        SharedWindowBuilder::new(&self.fleet, &self.namespace, target)
    }

    /// Creates the builder of a quiet period for `target` that the fleet shares.
    pub fn quiet_period<'a>(&'a self, target: &'a str) -> SharedQuietPeriodBuilder<'a> {
        SharedQuietPeriodBuilder::new(&self.fleet, &self.namespace, target)
    }

    /// Creates the builder of a circuit breaker for `target` that those of the other processes advise.
    pub fn breaker<'a>(&'a self, target: &'a str) -> SharedBreakerBuilder<'a> {
        SharedBreakerBuilder::new(&self.fleet, &self.namespace, target)
    }

    /// Creates the builder of an admission for `target`, such as the service's name, that all servers behind a balancer
    /// share: `rate` clients a second together. Range: 1 to 1,000,000,000.
    ///
    /// `secret` seals reservations, so that each server can tell those of the others from made-up ones. It is the same
    /// in all of them: 16 random bytes, from where the program has its passwords. It is never sent to the store, nor
    /// logged.
    pub fn admission<'a>(&'a self, target: &'a str, rate: u32, secret: Secret) -> SharedAdmissionBuilder<'a> {
        SharedAdmissionBuilder::new(&self.fleet, &self.namespace, target, rate, secret)
    }

    /// Lets these controls obey those that an operator sets for all processes of the namespace, with `stagger control`
    /// or a [`ControlStore`](crate::ControlStore). They are in force one period (a second) and a round trip later.
    ///
    /// Until the store has some, and after it has lost them, the controls stay as they are, so those of the environment
    /// hold at the start. Without the store the last ones stay in force, until their end if they have one;
    /// [`controls_snapshot`](Self::controls_snapshot) has their age. At their end every target is enforced. A fleet has
    /// one set of controls: the last call counts.
    pub fn controls(&self, controls: &RetryControls) {
        self.fleet.0.obey(controls.clone());
    }

    /// Returns what this process knows of the operator controls of the fleet; `None` if no controls obey them.
    #[must_use]
    pub fn controls_snapshot(&self) -> Option<ControlsSnapshot> {
        let (now, known) = (self.fleet.0.now(), self.fleet.0.controls()?.known());
        let since = |at: u64| Duration::from_micros(now.saturating_sub(at));
        Some(ControlsSnapshot {
            version: known.version,
            is_obeyed: known.is_obeyed,
            age: if known.version > 0 { Some(known.age(now)) } else { None },
            unconfirmed: known.confirmed_at.map(since),
            ends_in: known.ends_at.map(|end| Duration::from_micros(end.saturating_sub(now))),
        })
    }

    /// Waits until the background task has ended: its last report hands all leases back, so that others have them at
    /// once; otherwise they are lost. Drop all guards of the fleet before: while there is one, or a clone of the
    /// fleet, the task does not end. It takes as long as a reply, [`reply_limit`](FleetBuilder::reply_limit) at
    /// most, and nothing without a connection.
    ///
    /// # Cancel safety
    /// The task ends as well if the future is dropped.
    pub async fn close(self) {
        let registry = Arc::clone(&self.fleet.0);
        drop(self);
        registry.ended().await;
    }

    /// Returns a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> FleetSnapshot {
        let counts = &self.fleet.0.counts;
        FleetSnapshot {
            is_leased: counts.is_leased.load(Ordering::Relaxed),
            processes: counts.processes.load(Ordering::Relaxed),
            reports: counts.reports.load(Ordering::Relaxed),
            answered: counts.answered.load(Ordering::Relaxed),
            failures: counts.failures.load(Ordering::Relaxed),
            losses: counts.losses.load(Ordering::Acquire),
        }
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may have a password.
        f.debug_struct("Fleet").field("namespace", &self.namespace).field("snapshot", &self.snapshot()).finish()
    }
}

impl<'a> FleetBuilder<'a> {
    const fn new(address: Address<'a>, processes: u32) -> Self {
        Self {
            address,
            processes,
            namespace: "default",
            patience: PATIENCE,
            reply_limit: RESPONSE_TIMEOUT,
            listener: None,
        }
    }

    /// Sets the name that all keys of the fleet begin with: processes with the same namespace and target share a guard.
    /// Default: `default`.
    pub fn namespace(self, namespace: &'a str) -> Self {
        Self { namespace, ..self }
    }

    /// Sets how long a process that never had a reply waits for one before it uses its local shares. Its first
    /// connection is spread over a fifth of this time, because a deployment starts all processes at once. Default: 1 s.
    /// Range: 10 ms to 3 s; other values count as the nearer limit.
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience: patience.clamp(Duration::from_millis(10), LEASE), ..self }
    }

    /// Sets how long a reply of the store may take; a connection may take twice as long. Default: 250 ms. Range: 10 ms
    /// to 1 s; other values count as the nearer limit.
    ///
    /// If the store is in another region, set it to three times the usual round trip, and the patience to 3 s: the
    /// first reply takes four to six round trips. A reply that is later than the limit is none, and without replies a
    /// process uses its local shares. No call waits for a reply, so a longer limit costs only the time until the task
    /// tries again.
    pub fn reply_limit(self, limit: Duration) -> Self {
        Self { reply_limit: limit.clamp(Duration::from_millis(10), Duration::from_secs(1)), ..self }
    }

    /// Sets a function that receives every [`FleetEvent`]. It runs in the background task, so it must not block.
    pub fn on_event(self, listener: impl Fn(&FleetEvent) + Send + Sync + 'static) -> Self {
        Self { listener: Some(Box::new(listener)), ..self }
    }

    /// Starts the background task in the current tokio runtime. Does not wait for the store.
    ///
    /// # Errors
    /// Every problem at once: an address that cannot be used, no expected processes, a namespace without a name or with
    /// one of more than 128 bytes, no tokio runtime. Never because the store is away.
    pub fn build(self) -> Result<Fleet, SettingsError> {
        let Self { address, processes, namespace, patience, reply_limit, listener } = self;
        let mut problems = Vec::new();
        let connection = Connection::new(address, reply_limit);
        let connection = connection.map_err(|reason| problems.push(SettingsProblem::Url(reason)));
        if processes == 0 {
            problems.push(SettingsProblem::NoProcesses);
        }
        problems.extend(SettingsProblem::of_name(namespace));
        let runtime = Handle::try_current().map_err(|_| problems.push(SettingsProblem::NoRuntime));
        SettingsError::check(problems)?;
        let fleet = Arc::new(FleetHandle(Arc::new(Registry::new(u64::from(processes)))));
        // Neither failed: there is no problem.
        if let (Ok(connection), Ok(runtime)) = (connection, runtime) {
            let patience = u64::try_from(patience.as_micros()).unwrap_or(u64::MAX);
            let timing = Timing { patience, ..Timing::DEFAULT };
            let settings = TaskSettings { timing, processes: u64::from(processes), listener };
            runtime.spawn(Task::new(Arc::clone(&fleet.0), connection, settings, namespace).run());
        }
        Ok(Fleet { fleet, namespace: namespace.into() })
    }
}

impl fmt::Debug for FleetBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("FleetBuilder");
        debug.field("processes", &self.processes).field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
