use core::time::Duration;

use stagger_core::Jitter;

use super::{Limit, RetryBudget, Setting};

/// The settings of an [`Entry`](super::Entry): what the file states, and what applies because it does not.
///
/// `None` means that it cannot be said from the file, such as what an implementation of the Gateway API does by itself.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// Maximum number of attempts, the first one included.
    pub attempts: Option<Setting<Limit<u32>>>,
    /// Upper bound of the first delay.
    pub base: Option<Setting<Duration>>,
    /// Upper bound of every delay. `None` also if the delays do not grow.
    pub cap: Option<Setting<Limit<Duration>>>,
    /// Factor by which the upper bound grows with each retry.
    pub multiplier: Option<Setting<f64>>,
    /// Length by which the upper bound grows with each retry, in place of the factor.
    pub step: Option<Setting<Duration>>,
    /// Distribution of a delay below its upper bound.
    pub jitter: Option<Setting<Jitter>>,
    /// Time limit of one attempt.
    pub attempt_timeout: Option<Setting<Limit<Duration>>>,
    /// Time limit of all attempts and delays together.
    pub timeout: Option<Setting<Limit<Duration>>>,
    /// What limits the retries of all calls together.
    pub budget: Option<Setting<RetryBudget>>,
}

impl Settings {
    /// Returns whether at most one attempt is made.
    #[must_use]
    pub fn never_retries(&self) -> bool {
        self.attempts.is_some_and(|attempts| attempts.value == Limit::At(1))
    }

    /// Removes the delays if there is nothing to delay.
    pub(crate) fn normalize(&mut self) {
        if self.never_retries() {
            (self.base, self.cap, self.multiplier, self.step, self.jitter) = (None, None, None, None, None);
        }
    }

    /// Sets the same delay before each retry, without jitter.
    pub(crate) fn constant(mut self, delay: Setting<Duration>) -> Self {
        self.base = Some(delay);
        self.multiplier = Some(Setting::default(1.0));
        self.jitter = Some(Setting::default(Jitter::None));
        self
    }
}
