use core::fmt;
use core::time::Duration;

use super::claimed_slots::ClaimedSlots;
use super::{Admission, Secret};
use crate::numbers::atomic::{AtomicU64, const_unless_loom};
use crate::numbers::instant::nanos;
use crate::text::Compact;

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
    /// `early` allows for clients whose clocks run fast. It adds `rate · early` clients to the limit; a client that comes
    /// earlier keeps its reservation, and is told how long it still has to wait. `late` is reached only while no other
    /// client needs the time: after a second of it, the time of a client that has not come is free for others.
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
