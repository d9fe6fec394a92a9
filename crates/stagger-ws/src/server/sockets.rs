use core::fmt;
use core::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, Uri};
use stagger::admission::{Admission, AdmissionControl, Admit};
use stagger::time::{Clock as _, Tokio};
use stagger_http::admission::try_admit;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::builder::{SettingsError, SocketsBuilder};
use super::closing::{ClosingSlot, ClosingSlots};
use super::connections::ConnectionPermit;
use super::connections::ConnectionRegistry;
use super::connections::ServerState;
use super::counters::{Counters, SocketsSnapshot};
use super::drain::Drain;
use super::drain::DrainHandle;
use super::drain::DrainState;
use super::rejection::RejectBy;
use super::rejection::UpgradeRejected;
use super::subprotocol::is_token;
use super::subprotocol::returned_token;

/// The shared state of all WebSockets of one server. Cloning it is cheap, and clones share the state.
///
/// See the [module](super) for usage.
#[derive(Clone)]
pub struct Sockets {
    pub(super) shared: Arc<ServerState>,
}

impl SocketsBuilder {
    /// Validates the settings.
    ///
    /// # Errors
    /// The first [`SettingsError`] found.
    pub fn build(self) -> Result<Sockets, SettingsError> {
        if self.keepalive.is_some_and(|keepalive| keepalive.interval.is_zero() || keepalive.timeout.is_zero()) {
            return Err(SettingsError::Keepalive);
        }
        if self.max_handshakes == 0 {
            return Err(SettingsError::MaxHandshakes);
        }
        if self.max_handshakes_per_peer == Some(0) {
            return Err(SettingsError::MaxHandshakesPerPeer);
        }
        if self.max_closing_per_peer == Some(0) {
            return Err(SettingsError::MaxClosingPerPeer);
        }
        if let Some(index) = self.subprotocols.iter().position(|name| !is_token(name)) {
            return Err(SettingsError::Subprotocol { index });
        }
        if self.first_byte_timeout.is_zero() {
            return Err(SettingsError::FirstByteTimeout);
        }
        let slots = Arc::new(Semaphore::new(self.max_connections.min(Semaphore::MAX_PERMITS)));
        let closing = Arc::new(ClosingSlots::new(self.max_closing, self.max_closing_per_peer));
        let (counters, registry) = (Counters::default(), ConnectionRegistry::default());
        let shared = ServerState { settings: self, counters, registry, slots, closing, seed: stagger::seed() };
        Ok(Sockets { shared: Arc::new(shared) })
    }
}

impl Sockets {
    /// Returns a builder with this admission, which sets how many clients are admitted per second. Pass an `Arc` to
    /// keep access to the admission's snapshot.
    pub fn builder(admission: impl Into<Arc<Admission>>) -> SocketsBuilder {
        Self::builder_with(admission.into())
    }

    /// Returns a builder with an admission of another kind, such as one that all servers behind a balancer share.
    pub fn builder_with(admission: Arc<dyn AdmissionControl>) -> SocketsBuilder {
        SocketsBuilder::new(admission)
    }

    /// Decides whether to admit an upgrade request with these headers. A reservation is read from the header
    /// `stagger-reservation-token` or from a subprotocol ([`RESERVATION_PROTOCOL`](super::RESERVATION_PROTOCOL)).
    ///
    /// [`accept`](Self::accept) and the axum extractors do the same; call it yourself for other servers. The duration
    /// of the upgrade is measured from this call.
    ///
    /// # Errors
    /// [`UpgradeRejected`], for the response. It is counted.
    pub fn admit(&self, headers: &HeaderMap) -> Result<ConnectionPermit, UpgradeRejected> {
        self.admit_since(None, headers, Instant::now())
    }

    /// Decides as [`admit`](Self::admit) does; the reservation may also be in the query
    /// ([`RESERVATION_PARAMETER`](super::RESERVATION_PARAMETER)).
    ///
    /// # Errors
    /// [`UpgradeRejected`], for the response. It is counted.
    pub fn admit_with_uri(&self, uri: &Uri, headers: &HeaderMap) -> Result<ConnectionPermit, UpgradeRejected> {
        self.admit_since(Some(uri), headers, Instant::now())
    }

    pub(super) fn admit_since(
        &self,
        uri: Option<&Uri>,
        headers: &HeaderMap,
        since: Instant,
    ) -> Result<ConnectionPermit, UpgradeRejected> {
        let permit = self.try_admit(uri, headers, since);
        match &permit {
            Ok(_) => self.shared.counters.accepted.increment(),
            Err(rejected) => self.shared.counters.rejected(rejected),
        }
        permit
    }

    /// Returns a slot if a client that sent this request is to be rejected by a close. Counts it.
    pub(super) fn try_close(&self, uri: &Uri, headers: &HeaderMap, address: Option<IpAddr>) -> Option<ClosingSlot> {
        let ServerState { settings, counters, closing, .. } = &*self.shared;
        if settings.reject_by.choose(uri, headers) != RejectBy::Close {
            return None;
        }
        let slot = closing.try_take(address)?;
        counters.rejected_by_close.increment();
        Some(slot)
    }

    fn try_admit(
        &self,
        uri: Option<&Uri>,
        headers: &HeaderMap,
        since: Instant,
    ) -> Result<ConnectionPermit, UpgradeRejected> {
        let shared = &self.shared;
        let rejected = |drain: Arc<DrainState>| UpgradeRejected::Draining(drain.reserve(1).retry_after);
        if let Some(drain) = shared.registry.drain() {
            return Err(rejected(drain));
        }
        // The slot is taken first, since admitting a reservation uses it up.
        let slot = Arc::clone(&shared.slots).try_acquire_owned();
        let slot = slot.map_err(|_| UpgradeRejected::AtCapacity(shared.settings.retry_after_when_full))?;
        let (admission, now) = (&*shared.settings.admission, Tokio.now());
        let answer = match returned_token(uri, headers) {
            Some(token) => admission.admit_reserved(&token, now),
            None => try_admit(admission, headers, now),
        };
        if answer != Admit::Now {
            return Err(UpgradeRejected::RateLimited(answer));
        }
        // Checked again, under the registry's lock: a drain may have begun since.
        let entry = shared.registry.register().map_err(rejected)?;
        Ok(ConnectionPermit::new(Arc::clone(shared), entry, slot, since))
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

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets").field("name", &self.shared.settings.name).field("active", &self.active()).finish()
    }
}
