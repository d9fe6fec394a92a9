use core::fmt;
use core::time::Duration;

use super::{Reservation, ReservationToken};
use crate::numbers::atomic::{AtomicU64, Ordering, const_unless_loom};
use crate::numbers::instant::{Instant, nanos};
use crate::numbers::seed::Seed;
use crate::text::Compact;

/// Admission control with a virtual queue: admits a client now, or reserves a time for it to return.
///
/// A restarted server faces its whole fleet at once. If it rejects all clients but those it can take, they return by
/// their own backoff, again and again, each time too many or too few. Here each rejected client gets a reservation of
/// its own, one after the other, spaced as the server can take them. N clients before a server that takes C a second
/// need about 2 N attempts and N / C seconds, which is the optimum, and which random backoff does not reach.
///
/// - A client that returns at its reserved time with its [`ReservationToken`] is admitted.
/// - A client without a token is admitted if there is room: at most `burst` at once and `rate` a second, including the
///   clients with tokens. While other clients have reservations, only capacity that these have left unclaimed is room.
///   So a client without a reservation cannot overtake one that has it.
/// - Every other client gets the next free reservation, or [`Full`](Admit::Full) if that is further away than
///   `max_wait`.
///
/// In any time T it admits at most `rate · T + burst`, plus the clients that are late for their reservations.
///
/// Thread-safe and lock-free. Time is an argument, so servers and the simulation behave alike. Send the wait to clients
/// that do not support tokens as a plain `Retry-After`: they return without a token, into the capacity that they have
/// left unclaimed.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{admission::Admission, admission::Admit, Instant};
///
/// let admission = Admission::per_second(500).burst(1).build()?;
/// let now = Instant::from_nanos(1_000_000_000);
/// assert_eq!(admission.try_admit(now), Admit::Now);
/// let Admit::At(reservation) = admission.try_admit(now) else { panic!("there was room for one") };
/// assert_eq!(reservation.after, Duration::from_millis(2));
/// let then = now.saturating_add(reservation.after);
/// assert_eq!(admission.admit_reserved(&reservation.token, then), Admit::Now);
/// # Ok::<(), stagger_core::admission::AdmissionError>(())
/// ```
pub struct Admission {
    /// The time of one admission, in nanoseconds.
    interval: u64,
    /// How far `served` may be ahead of the current time.
    ahead: u64,
    max_wait: u64,
    early: u64,
    late: u64,
    secret: Seed,
    /// Until when the capacity is used up by admitted clients.
    served: AtomicU64,
    /// The time of the next free reservation.
    promised: AtomicU64,
}

/// The decision about a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admit {
    /// Admit the client now.
    Now,
    /// Reject the client; it may return at this time, which is reserved for it.
    At(Reservation),
    /// Reject the client without a reservation, because none is free within `max_wait`. It should return after this
    /// time. Send it as a hint that clients spread, such as `Retry-After`.
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

/// Builds an [`Admission`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a builder does nothing until `build`"]
pub struct AdmissionBuilder {
    rate: u32,
    burst: u32,
    max_wait: Duration,
    early: Duration,
    late: Duration,
    secret: Seed,
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

    /// Sets how long before its reserved time (for clocks that differ), and how long after it, a token is valid.
    /// Default: 50 ms and 10 s.
    pub const fn tolerance(self, early: Duration, late: Duration) -> Self {
        Self { early, late, ..self }
    }

    /// Sets the secret that tokens are sealed with. Servers behind one load balancer must share it. Use a random
    /// secret, or tokens can be guessed. Default: 0.
    pub const fn secret(self, secret: Seed) -> Self {
        Self { secret, ..self }
    }

    const_unless_loom! {
        /// Checks the settings and creates the admission control.
        ///
        /// # Errors
        /// The first [`AdmissionError`], with the value and how to fix it.
        pub const fn build(self) -> Result<Admission, AdmissionError> {
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
            Ok(Admission {
                interval,
                ahead: interval.saturating_mul(self.burst as u64 - 1),
                max_wait,
                early: nanos(self.early),
                late: nanos(self.late),
                secret: self.secret,
                served: AtomicU64::new(0),
                promised: AtomicU64::new(0),
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
            early: Duration::from_millis(50),
            late: Duration::from_secs(10),
            secret: Seed::new(0),
        }
    }

    /// Admits a client without a token, or reserves a time for it.
    pub fn try_admit(&self, now: Instant) -> Admit {
        if self.take_room(now.as_nanos()) { Admit::Now } else { self.reserve(now) }
    }

    /// Reserves a time for a client that cannot be admitted for another reason, such as a limit of concurrent clients.
    /// Returns a reservation or [`Full`](Admit::Full), never [`Now`](Admit::Now).
    pub fn reserve(&self, now: Instant) -> Admit {
        let now = now.as_nanos();
        // Not before the capacity that is already used is free again.
        let first = self.served.load(Ordering::Relaxed).saturating_sub(self.ahead).max(now);
        let first_free = |promised: u64| promised.max(first);
        let reserved = self.promised.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |promised| {
            let time = first_free(promised);
            (time - now <= self.max_wait).then(|| time.saturating_add(self.interval))
        });
        let Ok(time) = reserved.map(first_free) else {
            return Admit::Full(Duration::from_nanos(self.max_wait));
        };
        let token = ReservationToken::seal(Instant::from_nanos(time), self.secret);
        Admit::At(Reservation { after: Duration::from_nanos(time - now), token })
    }

    /// Admits a client with a token. A client that is too early gets the remaining wait, for the same reservation. A
    /// client that is too late, or has the token of another server, is treated as one without a token.
    pub fn admit_reserved(&self, token: &ReservationToken, now: Instant) -> Admit {
        let Some(time) = token.time(self.secret) else { return self.try_admit(now) };
        let (time, nanos) = (time.as_nanos(), now.as_nanos());
        if nanos.saturating_add(self.early) < time {
            let after = Duration::from_nanos(time - nanos);
            // A wait above `max_wait` was never issued: the token is forged.
            return if time - nanos > self.max_wait {
                self.try_admit(now)
            } else {
                Admit::At(Reservation { after, token: *token })
            };
        }
        if nanos > time.saturating_add(self.late) {
            return self.try_admit(now);
        }
        let _ = self.served.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |served| {
            Some(served.max(nanos).saturating_add(self.interval))
        });
        Admit::Now
    }

    /// Returns a snapshot as of `now`.
    pub fn snapshot(&self, now: Instant) -> AdmissionSnapshot {
        let now = now.as_nanos();
        let (served, promised) = (self.served.load(Ordering::Relaxed), self.promised.load(Ordering::Relaxed));
        let (from, until) = self.room(served, now);
        let room = until.checked_sub(from).map_or(0, |left| left / self.interval + 1);
        AdmissionSnapshot {
            reserved: (promised.max(now) - now).div_ceil(self.interval),
            next_in: Duration::from_nanos(promised.max(now) - now),
            available: room,
        }
    }

    /// Takes the capacity of one admission, if there is any.
    fn take_room(&self, now: u64) -> bool {
        let taken = self.served.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |served| {
            let (from, until) = self.room(served, now);
            (from <= until).then(|| from.saturating_add(self.interval))
        });
        taken.is_ok()
    }

    /// Returns from when on capacity is free, and until when a client without a reservation may take it.
    fn room(&self, served: u64, now: u64) -> (u64, u64) {
        if self.promised.load(Ordering::Relaxed) <= now {
            return (served.max(now), now.saturating_add(self.ahead));
        }
        // Other clients have reservations. Only capacity that they have left unclaimed for a while is free.
        let then = now.saturating_sub(UNCLAIMED);
        (served.max(then), then)
    }
}

/// How long a client may be late before its reserved capacity is free for others: the latency of a message, and a
/// little more.
const UNCLAIMED: u64 = 200_000_000;

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("interval", &Duration::from_nanos(self.interval))
            .field("served", &self.served)
            .field("promised", &self.promised)
            .finish_non_exhaustive()
    }
}
