use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use http::HeaderMap;
use stagger::Seed;
use stagger::admission::{Admission, Admit};
use stagger::time::{Clock as _, Tokio};
use stagger_http::admission::try_admit;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::builder::SocketsBuilder;
use super::connections::permit::ConnectionPermit;
use super::connections::registry::ConnectionRegistry;
use super::counters::{Counters, SocketsSnapshot};
use super::drain::handle::{DrainHandle, DrainState};
use super::drain::plan::Drain;
use super::rejected::UpgradeRejected;

/// The shared state of all WebSockets of one server. Cloning it is cheap, and clones share the state.
///
/// See the [module](super) for usage.
#[derive(Clone)]
pub struct Sockets {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) settings: SocketsBuilder,
    pub(super) counters: Counters,
    pub(super) registry: ConnectionRegistry,
    slots: Arc<Semaphore>,
    seed: Seed,
}

impl Sockets {
    /// Returns a builder with this admission, which sets how many clients are admitted per second. Pass an `Arc` to
    /// keep access to the admission's snapshot.
    pub fn builder(admission: impl Into<Arc<Admission>>) -> SocketsBuilder {
        SocketsBuilder::new(admission.into())
    }

    pub(super) fn from_builder(settings: SocketsBuilder) -> Self {
        let slots = Arc::new(Semaphore::new(settings.max_connections.min(Semaphore::MAX_PERMITS)));
        let (counters, registry) = (Counters::default(), ConnectionRegistry::default());
        Self { shared: Arc::new(Shared { settings, counters, registry, slots, seed: stagger::seed() }) }
    }

    /// Decides whether to admit an upgrade request with these headers.
    ///
    /// [`accept`](Self::accept) and the axum extractor call this; call it yourself for other servers. The duration of
    /// the upgrade is measured from this call.
    ///
    /// # Errors
    /// [`UpgradeRejected`], for the response. It is counted.
    pub fn admit(&self, headers: &HeaderMap) -> Result<ConnectionPermit, UpgradeRejected> {
        self.admit_since(headers, Instant::now())
    }

    pub(super) fn admit_since(&self, headers: &HeaderMap, since: Instant) -> Result<ConnectionPermit, UpgradeRejected> {
        let permit = self.shared.admit(headers, since);
        match &permit {
            Ok(_) => self.shared.counters.accepted(),
            Err(rejected) => self.shared.counters.rejected(rejected),
        }
        permit
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn active(&self) -> usize {
        self.shared.registry.active()
    }

    /// Returns a snapshot of all counters.
    #[must_use]
    pub fn snapshot(&self) -> SocketsSnapshot {
        self.shared.counters.snapshot(self.active())
    }

    /// Records the [`snapshot`](Self::snapshot) as metrics. Call it at each scrape, or once a second. The
    /// [contract](super#metrics) lists the names.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn record_metrics(&self) {
        self.snapshot().record(&self.shared.settings.name);
    }

    /// Starts a drain: closes all connections according to `plan`, and rejects new ones with a wait. It runs in a
    /// background task; use the returned handle to watch it. If a drain is already in progress, returns its handle and
    /// ignores `plan`.
    ///
    /// # Panics
    /// If called outside of a tokio runtime with time enabled.
    #[expect(clippy::must_use_candidate, reason = "the drain runs without the handle")]
    pub fn drain(&self, plan: Drain) -> DrainHandle {
        let shared = Arc::clone(&self.shared);
        match self.shared.registry.begin_drain(|total| DrainState::new(&plan, total)) {
            Ok(drain) => {
                let draining = DrainHandle::new(drain, shared);
                tokio::spawn(draining.clone().run(plan));
                draining
            }
            Err(drain) => DrainHandle::new(drain, shared),
        }
    }
}

impl Shared {
    fn admit(self: &Arc<Self>, headers: &HeaderMap, since: Instant) -> Result<ConnectionPermit, UpgradeRejected> {
        let rejected = |drain: Arc<DrainState>| UpgradeRejected::Draining(drain.reserve(1).retry_after);
        if let Some(drain) = self.registry.drain() {
            return Err(rejected(drain));
        }
        // The slot is taken first, since admitting a reservation uses it up.
        let slot = Arc::clone(&self.slots).try_acquire_owned();
        let slot = slot.map_err(|_| UpgradeRejected::AtCapacity(self.settings.retry_after_when_full))?;
        let answer = try_admit(&self.settings.admission, headers, Tokio.now());
        if answer != Admit::Now {
            return Err(UpgradeRejected::RateLimited(answer));
        }
        let entry = self.registry.register().map_err(rejected)?;
        Ok(ConnectionPermit::new(Arc::clone(self), entry, slot, since))
    }

    pub(super) fn upgraded(&self, took: Duration) {
        self.counters.upgraded(took);
        #[cfg(feature = "metrics")]
        metrics::histogram!("stagger_ws_upgrade_seconds", "target" => self.settings.name.to_string()).record(took);
    }

    pub(super) const fn random_bits(&self, id: u64) -> u64 {
        self.seed.for_call(id).get()
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets").field("name", &self.shared.settings.name).field("active", &self.active()).finish()
    }
}
