use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use http::HeaderMap;
use stagger::{Seed, admission::Admission, admission::Admit, time::Clock as _, time::Tokio};
use stagger_http::admission::try_admit;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::counts::Counts;
use super::drain::Course;
use super::roll::Roll;
use super::{Conn, Drain, Draining, Refusal, Snapshot, SocketsBuilder};

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
    semaphore: Arc<Semaphore>,
    seed: Seed,
}

impl Sockets {
    /// With this admission, which says how many may come in a second. An `Arc` of it can be kept, for its snapshot.
    pub fn builder(admission: impl Into<Arc<Admission>>) -> SocketsBuilder {
        SocketsBuilder::new(admission.into())
    }

    pub(super) fn with(settings: SocketsBuilder) -> Self {
        let semaphore = Arc::new(Semaphore::new(settings.most.min(Semaphore::MAX_PERMITS)));
        let (counts, roll) = (Counts::default(), Roll::default());
        Self { shared: Arc::new(Shared { settings, counts, roll, semaphore, seed: stagger::seed() }) }
    }

    /// Somebody asks for an upgrade, with these headers: is it let in?
    ///
    /// [`accept`](Self::accept) and the extractor for axum call this; it is for other servers. The upgrade is as old as this
    /// call.
    ///
    /// # Errors
    /// The [`Refusal`], for the answer. It is counted.
    pub fn let_in(&self, headers: &HeaderMap) -> Result<Conn, Refusal> {
        self.let_in_since(headers, Instant::now())
    }

    pub(super) fn let_in_since(&self, headers: &HeaderMap, since: Instant) -> Result<Conn, Refusal> {
        let conn = self.shared.let_in(headers, since);
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
    pub fn snapshot(&self) -> Snapshot {
        self.shared.counts.snapshot(self.active())
    }

    /// Gives the [`snapshot`](Self::snapshot) to whatever collects metrics: at each scrape, or once a second. The
    /// [contract](super#metrics) has the names.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn record(&self) {
        self.snapshot().record(&self.shared.settings.name);
    }

    /// Lets everybody go, by this plan, and nobody in any more: upgrades are refused with a wait. It goes on by itself; what
    /// comes back is a look at it. A second call joins the first drain, whatever its plan.
    ///
    /// # Panics
    /// Outside of a runtime of tokio with time.
    #[expect(clippy::must_use_candidate, reason = "it goes on without being looked at")]
    pub fn drain(&self, plan: Drain) -> Draining {
        let shared = Arc::clone(&self.shared);
        match self.shared.roll.begin(|total| Course::new(&plan, total)) {
            Ok(course) => {
                let draining = Draining::new(course, shared);
                tokio::spawn(draining.clone().run(plan));
                draining
            }
            Err(course) => Draining::new(course, shared),
        }
    }
}

impl Shared {
    fn let_in(self: &Arc<Self>, headers: &HeaderMap, since: Instant) -> Result<Conn, Refusal> {
        let draining = |course: Arc<Course>| Refusal::Draining(course.join(1).retry_after);
        if let Some(course) = self.roll.course() {
            return Err(draining(course));
        }
        // The place is taken first: a ticket that was let in is used up.
        let permit = Arc::clone(&self.semaphore).try_acquire_owned();
        let permit = permit.map_err(|_| Refusal::Connections(self.settings.full_wait))?;
        let answer = try_admit(&self.settings.admission, headers, Tokio.now());
        if answer != Admit::Now {
            return Err(Refusal::Rate(answer));
        }
        let entry = self.roll.enter().map_err(draining)?;
        Ok(Conn::new(Arc::clone(self), entry, permit, since))
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
