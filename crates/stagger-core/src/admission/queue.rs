use core::fmt;
use core::time::Duration;

use super::{Reservation, ReservationToken};
use crate::instant::nanos;
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::text::Compact;
use crate::{Instant, Seed};

/// Who may come in now, and when the others should come back: a queue in which nobody stands.
///
/// A server that is restarted meets its whole fleet at once. Refusing all but what it can take makes them come back by
/// their own backoff, again and again, each time too many or too few. Here each refused client is given an appointment of
/// its own, one after the other, as far apart as the server can take them: the herd comes back as a line. N clients before
/// a server that takes C a second need about 2 N attempts and N / C seconds, which is the limit, and which no random
/// backoff reaches.
///
/// - Whoever comes to its appointment with its [`ReservationToken`] is let in.
/// - Whoever comes without one is let in if there is room: at most `burst` at once and `rate` a second, what ticket holders
///   take included; and, as long as others have appointments, only into what those have left unclaimed.
/// - Everybody else gets the next free appointment, or is told to try again later if that is further away than `longest`.
///
/// In any time T it lets in at most `rate · T + burst`, and those who are late for their appointments.
///
/// Thread-safe and without a lock; time is an argument, and so every driver and the simulation have the same. Clients that
/// know nothing of tickets may be told the appointment's wait as a plain `Retry-After`: they come without a ticket, into the
/// room that they have left.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{admission::Admission, admission::Admit, Instant};
///
/// let admission = Admission::per_second(500).burst(1).build()?;
/// let now = Instant::from_nanos(1_000_000_000);
/// assert_eq!(admission.try_admit(now), Admit::Now);
/// let Admit::At(appointment) = admission.try_admit(now) else { panic!("there was room for one") };
/// assert_eq!(appointment.after, Duration::from_millis(2));
/// let then = now.saturating_add(appointment.after);
/// assert_eq!(admission.admit_reserved(&appointment.token, then), Admit::Now);
/// # Ok::<(), stagger_core::admission::AdmissionError>(())
/// ```
pub struct Admission {
    /// What one admission takes, in nanoseconds.
    interval: u64,
    /// How far `served` may be ahead of the present.
    ahead: u64,
    max_wait: u64,
    early: u64,
    late: u64,
    secret: Seed,
    /// When the room is used up until, by those who were let in.
    served: AtomicU64,
    /// When the next free appointment is.
    promised: AtomicU64,
}

/// The answer to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Admit {
    /// Come in.
    Now,
    /// Come back then: this appointment is reserved for you.
    At(Reservation),
    /// There is no appointment to be had: come back after this, each at a time of its own. To be told as a hint that
    /// clients spread, like `Retry-After`.
    Full(Duration),
}

/// How an [`Admission`] stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdmissionSnapshot {
    /// Appointments that are still to come.
    pub reserved: u64,
    /// When the next free one is, from now.
    pub next_in: Duration,
    /// How many could come in now without one.
    pub available: u64,
}

/// The settings of an [`Admission`].
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
    /// How many may come in at once without an appointment, after a quiet time. Default: what comes in within 100 ms, and
    /// at least 1.
    pub const fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// No appointment is further away than this. Default 5 minutes, what clients follow as a hint.
    pub const fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait, ..self }
    }

    /// A ticket counts from so long before its appointment, for clocks that run apart, until so long after it. Default
    /// 50 ms and 10 s.
    pub const fn tolerance(self, early: Duration, late: Duration) -> Self {
        Self { early, late, ..self }
    }

    /// What tickets are sealed with. Servers that share a load balancer share it; give a random one, or tickets can be
    /// guessed. Default 0.
    pub const fn secret(self, secret: Seed) -> Self {
        Self { secret, ..self }
    }

    const_unless_loom! {
        /// Checks the settings.
        ///
        /// # Errors
        /// The first [`AdmissionError`], with the way out.
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
    /// So many a second.
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

    /// A client is here, without a ticket.
    pub fn try_admit(&self, now: Instant) -> Admit {
        if self.take_room(now.as_nanos()) { Admit::Now } else { self.reserve(now) }
    }

    /// A client is here that cannot be let in for another reason, like the number of those who are in already: an
    /// appointment, or [`Full`](Admit::Full); never [`Now`](Admit::Now).
    pub fn reserve(&self, now: Instant) -> Admit {
        let now = now.as_nanos();
        // Not before the room is free that was used up already.
        let first = self.served.load(Ordering::Relaxed).saturating_sub(self.ahead).max(now);
        let mut promised = self.promised.load(Ordering::Relaxed);
        loop {
            let time = promised.max(first);
            if time - now > self.max_wait {
                return Admit::Full(Duration::from_nanos(self.max_wait));
            }
            let next = time.saturating_add(self.interval);
            match self.promised.compare_exchange_weak(promised, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    let token = ReservationToken::seal(Instant::from_nanos(time), self.secret);
                    return Admit::At(Reservation { after: Duration::from_nanos(time - now), token });
                }
                Err(seen) => promised = seen,
            }
        }
    }

    /// A client has come with its ticket. Who is too early is told how long to wait, for the same appointment; who is too
    /// late, or has a ticket of another server, is treated as if it had none.
    pub fn admit_reserved(&self, token: &ReservationToken, now: Instant) -> Admit {
        let Some(time) = token.time(self.secret) else { return self.try_admit(now) };
        let (time, nanos) = (time.as_nanos(), now.as_nanos());
        if nanos.saturating_add(self.early) < time {
            let after = Duration::from_nanos(time - nanos);
            // A wait that nobody was ever told is made up.
            return if time - nanos > self.max_wait {
                self.try_admit(now)
            } else {
                Admit::At(Reservation { after, token: *token })
            };
        }
        if nanos > time.saturating_add(self.late) {
            return self.try_admit(now);
        }
        let mut served = self.served.load(Ordering::Relaxed);
        loop {
            let next = served.max(nanos).saturating_add(self.interval);
            match self.served.compare_exchange_weak(served, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Admit::Now,
                Err(seen) => served = seen,
            }
        }
    }

    /// How it stands now.
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

    /// Takes the room of one admission, if there is any.
    fn take_room(&self, now: u64) -> bool {
        let mut served = self.served.load(Ordering::Relaxed);
        loop {
            let (from, until) = self.room(served, now);
            if from > until {
                return false;
            }
            let next = from.saturating_add(self.interval);
            match self.served.compare_exchange_weak(served, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(seen) => served = seen,
            }
        }
    }

    /// From when on the room is free, and until when it may be taken by somebody without an appointment.
    fn room(&self, served: u64, now: u64) -> (u64, u64) {
        if self.promised.load(Ordering::Relaxed) <= now {
            return (served.max(now), now.saturating_add(self.ahead));
        }
        // Others have appointments. Only what they have left unclaimed for a while is room.
        let then = now.saturating_sub(UNCLAIMED);
        (served.max(then), then)
    }
}

/// How long somebody may be late before others get what was reserved for them: a message's way, and a little more.
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
