//! The queue: who is admitted now, and which time is reserved for the others.

use core::fmt;
use core::time::Duration;

use super::claimed_slots::ClaimedSlots;
use super::{Reservation, ReservationToken, Secret};
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::instant::{Instant, nanos};
use crate::text::Compact;

/// Admission control with a virtual queue: admits a client now, or reserves a time for it to return.
///
/// A restarted server faces its whole fleet at once. If it rejects all clients but those it can take, they return by
/// their own backoff, again and again, each time too many or too few. Here each rejected client gets a reservation of
/// its own, one after the other, spaced as the server can take them. N clients before a server that takes C a second
/// need about 2 N attempts and N / C seconds, which is the optimum, and which random backoff does not reach.
///
/// - A client that returns at its reserved time with its [`ReservationToken`] is admitted, once.
/// - A client without a token is admitted if there is room: at most `burst` at once and `rate` a second, including the
///   clients with tokens. While other clients have reservations, only times for which nobody came are room, a second
///   later. So a client without a reservation cannot overtake one that has it.
/// - Every other client gets the next free reservation, or [`Full`](Admit::Full) if that is further away than
///   `max_wait`.
///
/// From the first client on, it has admitted at most `rate · T + burst` after any time T, whatever tokens are shown: a
/// token is valid once, and one that was redeemed before, that has expired, that another server gave or that a client
/// made up reserves nothing and moves nobody's time. In a window of time that begins later, clients may come in
/// addition that are late for a reservation before it.
///
/// The state is one fixed array of 16 KiB, however many clients come. It remembers the last 65,536 reservations; above
/// 6,500 admissions a second, a token is therefore valid for less than 10 s: the time of 65,536 admissions.
///
/// What it cannot tell apart is a flood of requests without tokens from a herd: each takes a reservation, and the queue
/// fills up to `max_wait`. Limit such a flood per client, in front.
///
/// Thread-safe and lock-free. Time is an argument, so servers and the simulation behave alike. Send the wait to clients
/// that do not support tokens as a plain `Retry-After`: they return without a token, and are admitted into times for
/// which nobody came. Each server has a queue of its own: behind a load balancer, route a client back to the server
/// that gave it the reservation, or put one admission in front of all. On another server the token counts as none.
/// `SharedAdmission` of `stagger-redis` is one queue for all of them.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{admission::Admission, admission::Admit, admission::Secret, Instant};
///
/// // A server draws its secret at random.
/// let admission = Admission::per_second(500).burst(1).build(Secret::new(*b"for this example"))?;
/// let now = Instant::from_nanos(1_000_000_000);
/// assert_eq!(admission.try_admit(now), Admit::Now);
/// let Admit::At(reservation) = admission.try_admit(now) else { panic!("there was room for one") };
/// assert_eq!(reservation.after, Duration::from_millis(2));
/// let then = now.saturating_add(reservation.after);
/// assert_eq!(admission.admit_reserved(&reservation.token, then), Admit::Now);
/// # Ok::<(), stagger_core::admission::AdmissionError>(())
/// ```
// All capacity is one line of positions, in nanoseconds, an interval apart. Each admission takes one: that of position
// p conforms to the limit from p − ahead on. A client that comes later than that is admitted and takes the position at
// the head of the line; any other gets it as a reservation, for the time p − ahead. Whoever is admitted by a
// reservation claims its slot, which is the position divided by the interval. So the positions up to now + ahead bound
// everything.
pub struct Admission {
    /// The time of one admission, in nanoseconds.
    pub(super) interval: u64,
    /// The time of the burst without its first client.
    pub(super) ahead: u64,
    pub(super) max_wait: u64,
    pub(super) early: u64,
    pub(super) late: u64,
    /// How long after its time a reservation is kept from others.
    pub(super) exclusive: u64,
    pub(super) secret: Secret,
    /// The next free position.
    pub(super) line: AtomicU64,
    /// The positions from here to the line are reservations, an interval apart, of which none was free for others yet.
    pub(super) reassigned: AtomicU64,
    pub(super) claimed: ClaimedSlots,
}

/// The decision about a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admit {
    /// Admit the client now.
    Now,
    /// Reject the client; it may return at this time, which is reserved for it.
    At(Reservation),
    /// Reject the client without a reservation, because none is free within `max_wait`, or because the token that it
    /// showed is not valid. It should return without a token after this time. Send it as a hint that clients spread,
    /// such as `Retry-After`.
    Full(Duration),
}

/// A snapshot of an [`Admission`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdmissionSnapshot {
    /// Reservations that are still to come.
    pub reserved: u64,
    /// The time until the next free reservation.
    pub next_in: Duration,
    /// How many clients could be admitted now without a reservation.
    pub available: u64,
}

impl Admission {
    /// Admits a client without a token, or reserves a time for it.
    pub fn try_admit(&self, now: Instant) -> Admit {
        if self.has_room(now.as_nanos()) { Admit::Now } else { self.reserve(now) }
    }

    /// Reserves a time for a client that cannot be admitted for another reason, such as a limit of concurrent clients.
    /// Returns a reservation or [`Full`](Admit::Full), never [`Now`](Admit::Now).
    pub fn reserve(&self, now: Instant) -> Admit {
        let now = now.as_nanos();
        let wait = |position: u64| position.saturating_sub(now.saturating_add(self.ahead));
        let reserved = self.line.fetch_update(Ordering::AcqRel, Ordering::Acquire, |line| {
            let position = line.max(now);
            if line < now {
                // The positions between were never reserved.
                self.reassigned.fetch_max(now, Ordering::Relaxed);
            }
            if wait(position) <= self.max_wait { Some(position.saturating_add(self.interval)) } else { None }
        });
        let Ok(position) = reserved.map(|line| line.max(now)) else {
            return Admit::Full(Duration::from_nanos(self.max_wait));
        };
        let token = ReservationToken::seal(position, self.secret);
        Admit::At(Reservation { after: Duration::from_nanos(wait(position)), token })
    }

    /// Admits a client with a token, once. A client that is too early gets the remaining wait, for the same
    /// reservation.
    ///
    /// A token that is not valid, because it was redeemed before, has expired or is not of this server, counts as none,
    /// and gets no new reservation: the client is admitted if there is room now, and otherwise rejected with
    /// [`Full`](Admit::Full) and the time of one admission. Without the token it then gets a reservation.
    pub fn admit_reserved(&self, token: &ReservationToken, now: Instant) -> Admit {
        let now = now.as_nanos();
        if let Some(position) = token.position(self.secret) {
            let wait = position.saturating_sub(now.saturating_add(self.ahead));
            // A longer wait was never granted: the clock has stepped back, or the secret is older than this queue.
            if self.early < wait && wait <= self.max_wait {
                return Admit::At(Reservation { after: Duration::from_nanos(wait), token: *token });
            }
            if wait <= self.early && now <= position.saturating_add(self.late) && self.redeem(position) {
                return Admit::Now;
            }
        }
        if self.has_room(now) { Admit::Now } else { Admit::Full(Duration::from_nanos(self.interval)) }
    }

    /// Returns a snapshot as of `now`.
    pub fn snapshot(&self, now: Instant) -> AdmissionSnapshot {
        let now = now.as_nanos();
        let line = self.line.load(Ordering::Acquire);
        let conforming = now.saturating_add(self.ahead);
        let next_in = line.saturating_sub(conforming);
        let available = match conforming.checked_sub(line.max(now)) {
            Some(left) => left / self.interval + 1,
            None => match self.reassignable(now) {
                Some([first, last]) => self.claimed.count_unclaimed(first, last),
                None => 0,
            },
        };
        AdmissionSnapshot {
            // The last of these intervals is that of the next reservation.
            reserved: next_in.div_ceil(self.interval).saturating_sub(1),
            next_in: Duration::from_nanos(next_in),
            available,
        }
    }

    /// Redeems a reservation. Returns whether it is one of this queue and was not redeemed or given to others before.
    fn redeem(&self, position: u64) -> bool {
        position < self.line.load(Ordering::Acquire) && self.claimed.claim(position / self.interval)
    }

    /// Takes the capacity of one admission that is free for any client, if there is any.
    fn has_room(&self, now: u64) -> bool {
        self.take_conforming(now) || self.take_unclaimed(now)
    }

    /// Takes the position at the head of the line if it conforms to the limit.
    fn take_conforming(&self, now: u64) -> bool {
        let conforming = now.saturating_add(self.ahead);
        let taken = self.line.fetch_update(Ordering::AcqRel, Ordering::Acquire, |line| {
            let position = line.max(now);
            if position > conforming {
                return None;
            }
            let next = position.saturating_add(self.interval);
            // Before the line moves: a thread that sees the line there must not take this position for a reservation.
            self.reassigned.fetch_max(next, Ordering::Relaxed);
            Some(next)
        });
        taken.is_ok()
    }

    /// Takes a reservation whose client has not come.
    fn take_unclaimed(&self, now: u64) -> bool {
        let Some([first, last]) = self.reassignable(now) else { return false };
        let taken = self.claimed.claim_first(first, last);
        // None of these is looked at again.
        let next = taken.unwrap_or(last).saturating_add(1).saturating_mul(self.interval);
        self.reassigned.fetch_max(next, Ordering::Relaxed);
        taken.is_some()
    }

    /// Returns the first and the last slot that is free for others if it is unclaimed: those of a burst, up to the one
    /// whose client has been late for long enough.
    fn reassignable(&self, now: u64) -> Option<[u64; 2]> {
        let line = self.line.load(Ordering::Acquire);
        let limit = now.saturating_add(self.ahead).checked_sub(self.exclusive)?;
        let reassigned = self.reassigned.load(Ordering::Relaxed);
        // The usual case, without a division: `last` is at most `limit`.
        if reassigned > limit {
            return None;
        }
        // Slots lie on a grid of whole intervals that ends at the line.
        let intervals = line.saturating_sub(limit).div_ceil(self.interval).max(1);
        let last = line.checked_sub(intervals.saturating_mul(self.interval))?;
        // Slots further back than a burst are lost, or an idle time would be saved up.
        let burst = self.ahead.saturating_add(self.interval);
        let from = reassigned.max(limit.saturating_add(1).saturating_sub(burst));
        let first = last - last.checked_sub(from)? / self.interval * self.interval;
        Some([first / self.interval, last / self.interval])
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("interval", &Duration::from_nanos(self.interval))
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

/// Builds an [`Admission`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a builder does nothing until `build`"]
pub struct AdmissionBuilder {
    rate: u32,
    burst: u32,
    max_wait: Duration,
    early: Duration,
    late: Duration,
}

/// A problem in the settings of an [`Admission`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdmissionError {
    /// The rate, in clients a second, is 0 or above a billion.
    Rate(u32),
    /// The burst is 0.
    Burst,
    /// `max_wait` is shorter than the interval between two admissions.
    MaxWait {
        /// The longest wait that was set.
        max_wait: Duration,
        /// The interval between two admissions, which is `1 / rate`.
        interval: Duration,
    },
    /// All bytes of the secret are zero.
    Secret,
}

impl fmt::Display for AdmissionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Rate(rate) => {
                write!(f, "rate {rate} is outside 1 to 1000000000 a second: use the rate that the server can take")
            }
            Self::Burst => {
                f.write_str("burst is 0, so no client could be admitted without a reservation: use 1 or more")
            }
            Self::MaxWait { max_wait, interval } => write!(
                f,
                "max_wait {} is shorter than {}, the interval between two admissions: raise max_wait or the rate",
                Compact(max_wait),
                Compact(interval)
            ),
            Self::Secret => f.write_str(
                "the secret is zero, so anyone could make up reservations: draw a random one when the server starts, \
                 such as with stagger::admission::random_secret()",
            ),
        }
    }
}

impl core::error::Error for AdmissionError {}

impl AdmissionBuilder {
    /// Sets how many clients may be admitted at once without a reservation, after a quiet time. Default: the clients of
    /// 100 ms, and at least 1.
    pub const fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// Sets the longest wait for a reservation. Default: 5 minutes, the longest hint that clients follow by default.
    pub const fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait, ..self }
    }

    /// Sets how long before its reserved time, and how long after it, a token is valid. Default: 0 and 10 s.
    ///
    /// `early` allows for clients whose clocks run fast. It adds `rate · early` clients to the limit; a client that
    /// comes earlier keeps its reservation, and is told how long it still has to wait. `late` is reached only while no
    /// other client needs the time: after a second of it, the time of a client that has not come is free for others.
    pub const fn tolerance(self, early: Duration, late: Duration) -> Self {
        Self { early, late, ..self }
    }

    const_unless_loom! {
        /// Checks the settings and creates the admission control, which seals its reservations with `secret`.
        ///
        /// # Errors
        /// The first [`AdmissionError`], with the value and how to fix it.
        pub const fn build(self, secret: Secret) -> Result<Admission, AdmissionError> {
            if self.rate == 0 || self.rate > 1_000_000_000 {
                return Err(AdmissionError::Rate(self.rate));
            }
            if self.burst == 0 {
                return Err(AdmissionError::Burst);
            }
            let interval = 1_000_000_000_u64.div_ceil(self.rate as u64);
            let max_wait = nanos(self.max_wait);
            if max_wait < interval {
                return Err(AdmissionError::MaxWait {
                    max_wait: self.max_wait,
                    interval: Duration::from_nanos(interval),
                });
            }
            if secret.is_zero() {
                return Err(AdmissionError::Secret);
            }
            let late = nanos(self.late);
            Ok(Admission {
                interval,
                ahead: interval.saturating_mul(self.burst as u64 - 1),
                max_wait,
                early: nanos(self.early),
                late,
                exclusive: if late < EXCLUSIVE { late } else { EXCLUSIVE },
                secret,
                line: AtomicU64::new(0),
                reassigned: AtomicU64::new(0),
                claimed: ClaimedSlots::new(),
            })
        }
    }
}

impl Admission {
    /// Creates a builder for `rate` admissions a second. Range: 1 to 1,000,000,000.
    pub const fn per_second(rate: u32) -> AdmissionBuilder {
        AdmissionBuilder {
            rate,
            burst: if rate < 10 { 1 } else { rate / 10 },
            max_wait: Duration::from_secs(300),
            early: Duration::ZERO,
            late: Duration::from_secs(10),
        }
    }
}

/// How long a client may be late before its reserved time is free for others: several round trips, because it opens a
/// connection first.
const EXCLUSIVE: u64 = 1_000_000_000;

/// Decides which clients of a server are admitted: what a server's integration asks.
///
/// [`Admission`] is that of one server. `SharedAdmission` of `stagger-redis` is one that all servers behind a balancer
/// share.
pub trait AdmissionControl: fmt::Debug + Send + Sync {
    /// Admits a client without a token, or reserves a time for it.
    fn try_admit(&self, now: Instant) -> Admit;

    /// Reserves a time for a client that cannot be admitted for another reason, such as a limit of concurrent clients.
    /// Returns a reservation or [`Full`](Admit::Full), never [`Now`](Admit::Now).
    fn reserve(&self, now: Instant) -> Admit;

    /// Admits a client with a token, once. A client that is too early gets the remaining wait, for the same
    /// reservation.
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
