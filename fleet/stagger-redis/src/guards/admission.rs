use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use stagger::Instant;
use stagger::admission::{AdmissionControl, Admit, ReservationToken, Secret};
use stagger_lease::admission::queue::Queue;
use stagger_lease::admission::settings::AdmissionSettings;
use stagger_lease::admission::shares::WHOLE;

use crate::error::{SettingsError, SettingsProblem};
use crate::keys::{AdmissionKeys, admission_keys};
use crate::registry::{FleetHandle, GuardHandle, Registry, Target};

/// Admission control with one virtual queue for all servers behind a balancer: a client that one server rejects returns
/// at its reserved time to any of them.
///
/// ```text
/// clients admitted in T seconds ≤ rate · T + burst                  if every reservation is shown once
///                               ≤ rate · (T + 1 s) + burst          whatever tokens are shown, at whatever servers
/// ```
///
/// Each server has a *share* of the rate, its weight divided by the weights of all that are there, and decides alone
/// with it; a background task renews the share each second. No client waits for the store. Times of reservations are
/// those of the store's clock.
///
/// - a client without a token: admitted within the server's share of rate and burst; while reservations are pending,
///   into capacity that nobody has come for during the time of a burst.
/// - any other: the next free time of the server, or [`Full`](Admit::Full) if that is further away than `max_wait`.
/// - a client with the token of any server: admitted at its time, up to 250 ms before and 10 s after it, within the
///   server's share; a second of it is kept for such clients, because a balancer does not divide them evenly.
/// - … for which the server has no capacity: another reservation, at the end of the line.
/// - a token that was redeemed at this server, is too late or is not sealed with the secret: counts as none, and gets
///   no new reservation.
/// - a token that is shown at several servers: may be redeemed at each, out of their shares.
/// - a server that starts: `rate / processes` without a burst until the first reply, then its share, behind the
///   reservations of all.
/// - a server that is killed: its share goes to the others after 3.75 seconds.
/// - without the store: `rate / processes`, the larger of the expected number and the largest that was seen.
///   Reservations of all are honored still.
/// - k servers cannot reach the store, and the others can: at most `k / processes · rate` more, until three seconds
///   after they can.
/// - the store's clock jumps: reservations that are pending are early or late by the jump.
///
/// With N clients before servers that take C a second, each needs at most two attempts, and the last is in after N / C
/// seconds, if the balancer divides clients by the weights: in turn, at random, or by connections. If it sends one
/// server more, that server rejects them, although others have capacity.
///
/// Pass it to `AdmissionLayer::with_control` of `stagger-http`, or `Sockets::builder_with` of `stagger-ws`, in an
/// `Arc`. The times that they pass are not used: the guard reads the fleet's clock, which is tokio's.
///
/// Clones share one share, and so do all of a fleet with the same target.
///
/// # Cost
///
/// Lock-free; one clock reading and a few atomic operations. 512 KiB per server, for the tokens that were redeemed
/// lately.
#[derive(Clone)]
pub struct SharedAdmission {
    handle: Arc<GuardHandle<AdmissionTarget>>,
}

/// Builds a [`SharedAdmission`]. Created by [`Fleet::admission`](crate::Fleet::admission).
#[derive(Clone, Debug)]
#[must_use]
pub struct SharedAdmissionBuilder<'a> {
    fleet: &'a Arc<FleetHandle>,
    namespace: &'a str,
    target: &'a str,
    settings: AdmissionSettings,
}

/// A snapshot of a [`SharedAdmission`], for metrics. It is of this server.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SharedAdmissionSnapshot {
    /// The share of the rate, from 0 to 1.
    pub share: f64,
    /// Clients that were admitted.
    pub admitted: u64,
    /// Clients that were given a time to return.
    pub reserved: u64,
    /// Of these, clients that came at their time, and for whom there was no capacity.
    pub deferred: u64,
    /// The time until the next one that would be reserved.
    pub next_in: Duration,
}

impl SharedAdmission {
    /// Returns a snapshot.
    #[must_use]
    pub fn snapshot(&self) -> SharedAdmissionSnapshot {
        let snapshot = self.queue().snapshot(self.registry().now_nanos());
        SharedAdmissionSnapshot {
            share: snapshot.share as f64 / WHOLE as f64,
            admitted: snapshot.admitted,
            reserved: snapshot.reserved,
            deferred: snapshot.deferred,
            next_in: Duration::from_nanos(snapshot.next_in),
        }
    }

    fn queue(&self) -> &Queue {
        &self.handle.target.queue
    }

    fn registry(&self) -> &Registry {
        &self.handle.fleet.0
    }
}

impl AdmissionControl for SharedAdmission {
    fn try_admit(&self, _: Instant) -> Admit {
        self.queue().try_admit(self.registry().offset(), self.registry().now_nanos())
    }

    fn reserve(&self, _: Instant) -> Admit {
        self.queue().reserve(self.registry().offset(), self.registry().now_nanos())
    }

    fn admit_reserved(&self, token: &ReservationToken, _: Instant) -> Admit {
        self.queue().admit_reserved(token, self.registry().offset(), self.registry().now_nanos())
    }
}

impl fmt::Debug for SharedAdmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("SharedAdmission");
        debug.field("target", &self.handle.target.name).field("snapshot", &self.snapshot()).finish()
    }
}

impl<'a> SharedAdmissionBuilder<'a> {
    pub(crate) const fn new(
        fleet: &'a Arc<FleetHandle>,
        namespace: &'a str,
        target: &'a str,
        rate: u32,
        secret: Secret,
    ) -> Self {
        Self { fleet, namespace, target, settings: AdmissionSettings::new(rate, secret) }
    }

    /// Sets how many clients all servers together may admit at once without a reservation, after a quiet time. Default:
    /// the clients of 100 ms. Each server may admit at least one.
    pub const fn burst(mut self, burst: u32) -> Self {
        self.settings.burst = Some(burst);
        self
    }

    /// Sets the longest wait for a reservation. Default: 5 minutes, the longest hint that clients follow by default.
    /// Range: above 0, at most an hour.
    pub const fn max_wait(mut self, max_wait: Duration) -> Self {
        self.settings.max_wait = max_wait;
        self
    }

    /// Sets the weight of this server: its share of the rate is its part of the weights of all. Use the weight that the
    /// balancer has. Default: 1. Range: 1 to 1,000,000. Until the first reply, and without the store, weights do not
    /// count.
    pub const fn weight(mut self, weight: u32) -> Self {
        self.settings.weight = weight;
        self
    }

    /// Sets how many clients a second this server admits at most, also if the others are down. Default: the whole rate.
    pub const fn max_here(mut self, rate: u32) -> Self {
        self.settings.most = Some(rate);
        self
    }

    /// Sets another secret whose reservations are honored as well, to change the secret without a restart of all
    /// servers at once. Default: none.
    ///
    /// Deploy three times: the old secret, with the new one accepted; the new one, with the old one accepted; and, once
    /// the longest wait is over, the new one alone. At any time every server honors what the others seal.
    pub const fn also_accept(mut self, secret: Secret) -> Self {
        self.settings.accepted = Some(secret);
        self
    }

    /// Creates the admission.
    ///
    /// # Errors
    /// Every problem at once: a target without a name or with one of more than 128 bytes; a rate of 0 or above a
    /// thousand million; a burst of 0; a longest wait or a weight outside its range; a limit of this server below a
    /// millionth of the rate; a secret of zero, also one that is only accepted. Then: the target has other settings in
    /// this fleet, or the fleet has 64 guards.
    pub fn build(self) -> Result<SharedAdmission, SettingsError> {
        let Self { fleet, namespace, target, settings } = self;
        let limits = SettingsError::of_guard(target, settings.limits(), SettingsProblem::of_admission)?;
        let registry = &fleet.0;
        let queue = Queue::new(limits, registry.expected(), stagger::seed().get(), registry.now_nanos());
        let target = AdmissionTarget { name: target.into(), keys: admission_keys(namespace, target), queue };
        Ok(SharedAdmission { handle: Registry::hold(fleet, target)? })
    }
}

/// One admission of a fleet in this process.
#[derive(Debug)]
pub(crate) struct AdmissionTarget {
    pub(crate) name: Box<str>,
    pub(crate) keys: AdmissionKeys,
    pub(crate) queue: Queue,
}

impl Target for AdmissionTarget {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_like(&self, other: &Self) -> bool {
        self.queue.limits().is_like(other.queue.limits())
    }
}
