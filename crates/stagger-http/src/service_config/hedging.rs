use core::num::NonZeroU32;
use core::time::Duration;

use stagger::{hedge::Hedge, hedge::HedgeDelay};

use super::{MOST_ATTEMPTS, ServiceConfigError, Unsaid};
use crate::grpc::Codes;

/// `hedgingPolicy`: how many copies of a call may be under way, and how far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedging {
    attempts: NonZeroU32,
    delay: Duration,
    non_fatal: Codes,
}

impl Hedging {
    pub(super) fn checked(attempts: NonZeroU32, delay: Duration, non_fatal: Codes) -> Self {
        Self { attempts: attempts.min(MOST), delay, non_fatal }
    }

    /// What a hedge does, with the codes that do not end a call, and what of it cannot be said.
    ///
    /// # Errors
    /// It makes no copy.
    pub fn new(hedge: &Hedge, non_fatal: Codes) -> Result<(Self, Vec<Unsaid>), ServiceConfigError> {
        let attempts = NonZeroU32::MIN.saturating_add(hedge.max_copies());
        if attempts < LEAST {
            return Err(ServiceConfigError::one("the hedge makes no copy: leave hedgingPolicy out"));
        }
        let mut unsaid = Vec::new();
        if attempts > MOST {
            unsaid.push(Unsaid::MaxAttempts(Some(attempts)));
        }
        let delay = match hedge.delay() {
            HedgeDelay::Fixed(delay) => delay,
            HedgeDelay::Quantile { share, until_known } => {
                unsaid.push(Unsaid::Quantile(share));
                until_known
            }
            // It has no words for what there may be in the future.
            _ => return Err(ServiceConfigError::one("the hedge's delay is none that gRPC has: use a fixed one")),
        };
        Ok((Self::checked(attempts, delay, non_fatal), unsaid))
    }

    /// The hedge.
    #[must_use]
    pub const fn hedge(self) -> Hedge {
        Hedge::after(self.delay).with_max_copies(self.attempts.get() - 1)
    }

    /// How many attempts there are at most, the first included. Range 2 to 5.
    #[must_use]
    pub const fn max_attempts(self) -> NonZeroU32 {
        self.attempts
    }

    /// How long a copy waits for the one before it. Zero: all of them start at once.
    #[must_use]
    pub const fn delay(self) -> Duration {
        self.delay
    }

    /// The codes that do not end the call: another copy then starts at once. Every other code ends it.
    #[must_use]
    pub const fn non_fatal(self) -> Codes {
        self.non_fatal
    }
}

const LEAST: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);
const MOST: NonZeroU32 = NonZeroU32::MIN.saturating_add(MOST_ATTEMPTS - 1);
