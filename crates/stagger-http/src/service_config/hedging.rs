use core::num::NonZeroU32;
use core::time::Duration;

use stagger::hedge::{Hedge, HedgeDelay};
use stagger_config::service_config::MAX_ATTEMPTS;

use super::{ServiceConfigError, Unmapped};
use crate::grpc::Codes;

/// `hedgingPolicy`: how many attempts of a call may be in flight, and how far apart they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedging {
    attempts: NonZeroU32,
    delay: Duration,
    non_fatal: Codes,
}

impl Hedging {
    pub(super) fn from_fields(attempts: NonZeroU32, delay: Duration, non_fatal: Codes) -> Self {
        Self { attempts: attempts.min(MAX), delay, non_fatal }
    }

    /// Maps a hedge, with the codes that do not end a call. Also returns the settings that a service config cannot express.
    ///
    /// # Errors
    /// Returns an error if the hedge launches no copies, or its delay has no counterpart in gRPC.
    pub fn from_hedge(hedge: &Hedge, non_fatal: Codes) -> Result<(Self, Vec<Unmapped>), ServiceConfigError> {
        let attempts = NonZeroU32::MIN.saturating_add(hedge.max_copies());
        if attempts < MIN {
            return Err(ServiceConfigError::one("the hedge launches no copies; omit hedgingPolicy"));
        }
        let mut unmapped = Vec::new();
        if attempts > MAX {
            unmapped.push(Unmapped::MaxAttempts(Some(attempts)));
        }
        let delay = match hedge.delay() {
            HedgeDelay::Fixed(delay) => delay,
            HedgeDelay::Quantile { share, until_known } => {
                unmapped.push(Unmapped::Quantile(share));
                until_known
            }
            // `HedgeDelay` is non-exhaustive.
            _ => {
                return Err(ServiceConfigError::one("gRPC has no counterpart of the hedge's delay; use a fixed delay"));
            }
        };
        Ok((Self::from_fields(attempts, delay, non_fatal), unmapped))
    }

    /// Returns the hedge.
    #[must_use]
    pub const fn to_hedge(self) -> Hedge {
        Hedge::after(self.delay).with_max_copies(self.attempts.get() - 1)
    }

    /// Returns the maximum number of attempts, including the first. Range: 2 to 5.
    #[must_use]
    pub const fn max_attempts(self) -> NonZeroU32 {
        self.attempts
    }

    /// Returns the delay between the starts of consecutive attempts. If it is zero, all of them start at once.
    #[must_use]
    pub const fn delay(self) -> Duration {
        self.delay
    }

    /// Returns the codes that do not end the call: after one of them, the next attempt starts immediately. Any other code ends
    /// the call.
    #[must_use]
    pub const fn non_fatal_codes(self) -> Codes {
        self.non_fatal
    }
}

const MIN: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);
const MAX: NonZeroU32 = NonZeroU32::MIN.saturating_add(MAX_ATTEMPTS - 1);
