use core::fmt;

use super::{Admission, Admit, ReservationToken};
use crate::numbers::instant::Instant;

/// Decides which clients of a server are admitted: what a server's integration asks.
///
/// [`Admission`] is that of one server. `SharedAdmission` of `stagger-redis` is one that all servers behind a balancer share.
pub trait AdmissionControl: fmt::Debug + Send + Sync {
    /// Admits a client without a token, or reserves a time for it.
    fn try_admit(&self, now: Instant) -> Admit;

    /// Reserves a time for a client that cannot be admitted for another reason, such as a limit of concurrent clients.
    /// Returns a reservation or [`Full`](Admit::Full), never [`Now`](Admit::Now).
    fn reserve(&self, now: Instant) -> Admit;

    /// Admits a client with a token, once. A client that is too early gets the remaining wait, for the same reservation.
    fn admit_reserved(&self, token: &ReservationToken, now: Instant) -> Admit;
}

impl AdmissionControl for Admission {
    fn try_admit(&self, now: Instant) -> Admit {
        Self::try_admit(self, now)
    }

    fn reserve(&self, now: Instant) -> Admit {
        Self::reserve(self, now)
    }

    fn admit_reserved(&self, token: &ReservationToken, now: Instant) -> Admit {
        Self::admit_reserved(self, token, now)
    }
}
