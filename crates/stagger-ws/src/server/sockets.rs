use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use http::HeaderMap;
use stagger::{Admission, Admitted, Clock as _, Seed, Tokio};
use stagger_http::admission::{Places, ask};
use tokio::time::Instant;

use super::counts::Counts;
use super::drain::Course;
use super::roll::Roll;
use super::{ConnectionPermit, Drain, DrainHandle, SocketsBuilder, SocketsSnapshot, UpgradeRejected};

/// All the WebSockets of one server. Its clones are the same.
///
/// See the [module](super) for how it is used.
#[derive(Clone)]
pub struct Sockets {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) settings: SocketsBuilder,
    pub(super) counts: Counts,
    pub(super) roll: Roll,
    places: Places,
    seed: Seed,
}

impl Sockets {
    /// With this admission, which says how many may come in a second. An `Arc` of it can be kept, for its snapshot.
    pub fn builder(admission: impl Into<Arc<Admission>>) -> SocketsBuilder {
        SocketsBuilder::new(admission.into())
    }

    pub(super) fn with(settings: SocketsBuilder) -> Self {
        let places = Places::new(settings.max_connections);
        let (counts, roll) = (Counts::default(), Roll::default());
        Self { shared: Arc::new(Shared { settings, counts, roll, places, seed: stagger::seed() }) }
    }

    /// Somebody asks for an upgrade, with these headers: is it let in?
    ///
    /// [`accept`](Self::accept) and the extractor for axum call this; it is for other servers. The upgrade is as old as this
    /// call.
    ///
    /// # Errors
    /// The [`UpgradeRejected`], for the answer. It is counted.
    pub fn admit(&self, headers: &HeaderMap) -> Result<ConnectionPermit, UpgradeRejected> {
        self.let_in_since(headers, Instant::now())
    }

    pub(super) fn let_in_since(
        &self,
        headers: &HeaderMap,
        since: Instant,
    ) -> Result<ConnectionPermit, UpgradeRejected> {
        let conn = self.shared.admit(headers, since);
        match &conn {
            Ok(_) => self.shared.counts.accepted(),
            Err(refusal) => self.shared.counts.refused(refusal),
        }
        conn
    }

    /// How many connections there are.
    #[must_use]
    pub fn active(&self) -> usize {
        self.shared.roll.active()
    }

    /// How the connections stand, and what has come of them.
    #[must_use]
    pub fn snapshot(&self) -> SocketsSnapshot {
        self.shared.counts.snapshot(self.active())
    }

    /// Gives the [`snapshot`](Self::snapshot) to whatever collects metrics: at each scrape, or once a second. The
    /// [contract](super#metrics) has the names.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn record_metrics(&self) {
        self.snapshot().record(&self.shared.settings.name);
    }

    /// Lets everybody go, by this plan, and nobody in any more: upgrades are refused with a wait. It goes on by itself; what
    /// comes back is a look at it. A second call joins the first drain, whatever its plan.
    ///
    /// # Panics
    /// Outside of a runtime of tokio with time.
    #[expect(clippy::must_use_candidate, reason = "it goes on without being looked at")]
    pub fn drain(&self, plan: Drain) -> DrainHandle {
        let shared = Arc::clone(&self.shared);
        match self.shared.roll.begin(|total| Course::new(&plan, total)) {
            Ok(course) => {
                let draining = DrainHandle::new(course, shared);
                tokio::spawn(draining.clone().run(plan));
                draining
            }
            Err(course) => DrainHandle::new(course, shared),
        }
    }
}

impl Shared {
    fn admit(self: &Arc<Self>, headers: &HeaderMap, since: Instant) -> Result<ConnectionPermit, UpgradeRejected> {
        let draining = |course: Arc<Course>| UpgradeRejected::Draining(course.join(1).retry_after);
        if let Some(course) = self.roll.course() {
            return Err(draining(course));
        }
        // The place is taken first: a ticket that was let in is used up.
        let place = self.places.take().ok_or(UpgradeRejected::AtCapacity(self.settings.retry_after_when_full))?;
        let answer = ask(&self.settings.admission, headers, Tokio.now());
        if answer != Admitted::Yes {
            return Err(UpgradeRejected::RateLimited(answer));
        }
        let entry = self.roll.enter().map_err(draining)?;
        Ok(ConnectionPermit::new(Arc::clone(self), entry, place, since))
    }

    pub(super) fn upgraded(&self, took: Duration) {
        self.counts.upgraded(took);
        #[cfg(feature = "metrics")]
        metrics::histogram!("stagger_ws_upgrade_seconds", "target" => self.settings.name.to_string()).record(took);
    }

    pub(super) const fn bits(&self, id: u64) -> u64 {
        self.seed.for_call(id).get()
    }
}

impl fmt::Debug for Sockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sockets").field("name", &self.shared.settings.name).field("active", &self.active()).finish()
    }
}
