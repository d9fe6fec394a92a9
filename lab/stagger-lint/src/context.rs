use core::num::{NonZeroU32, NonZeroU64};
use core::time::Duration;

use stagger_core::text::{ParseValueError, Rate};
use stagger_core::{Policy, policy, profile};

use crate::Budgeted;
use crate::setters::setters;

/// The deployment a policy is used in. Every field is optional: a rule that needs a value that is not set does not
/// apply.
///
/// ```
/// use core::num::NonZeroU64;
/// use stagger_core::text::Rate;
/// use stagger_lint::{DeploymentContext, Purpose};
///
/// let fleet = DeploymentContext::default()
///     .purpose(Purpose::Reconnecting)
///     .clients(NonZeroU64::new(10_000).unwrap())
///     .capacity(Rate::per_second(500.0).unwrap());
/// assert_eq!(fleet.min_recovery_time().unwrap().as_secs(), 20);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct DeploymentContext {
    pub(crate) clients: Option<NonZeroU64>,
    pub(crate) capacity: Option<Rate>,
    pub(super) requests: Option<Rate>,
    pub(crate) purpose: Option<Purpose>,
    pub(crate) deadline: Option<Duration>,
    pub(super) lease: Option<Duration>,
    pub(super) invocation: Option<Duration>,
    pub(super) attempt_timeout: Option<Duration>,
    pub(super) tick: Option<Duration>,
    pub(super) layers: Option<NonZeroU32>,
    pub(crate) idempotency: Option<Idempotency>,
    pub(super) budget: Option<Budgeted>,
    pub(super) retry_after: Option<Duration>,
    pub(super) backlog: Option<NonZeroU32>,
}

/// The purpose of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// A user waits for the result.
    Interactive,
    /// Inside a serverless function that is billed by execution time.
    Serverless,
    /// A background job.
    Background,
    /// A long-lived connection that is re-established when lost.
    Reconnecting,
    /// A nearby API: in the same data center, a sidecar, a cache.
    Near,
    /// A database or a remote service.
    Far,
}

/// For a database; long enough for a failover.
const FAR: Policy = policy!(exponential(ms(200), secs(10)).max_attempts(4));

/// Returns the policy recommended for a purpose if nothing else is known.
pub(crate) fn usual_policy(purpose: Option<Purpose>) -> Policy {
    match purpose {
        Some(Purpose::Interactive) => profile::INTERACTIVE.policy(),
        Some(Purpose::Serverless) => profile::SERVERLESS.policy(),
        Some(Purpose::Background) => profile::BACKGROUND_JOB.policy(),
        Some(Purpose::Reconnecting) => profile::WEB_SOCKET.policy(),
        Some(Purpose::Far) => FAR,
        Some(Purpose::Near) | None => Policy::DEFAULT,
    }
}

/// Whether executing the operation twice is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Idempotency {
    /// The operation is idempotent.
    Yes,
    /// The server recognizes repetitions by an idempotency key that all attempts share.
    ByKey,
    /// The operation would be executed twice.
    No,
}

impl DeploymentContext {
    /// The default timer resolution, that of tokio. Override it with [`tick`](Self::tick).
    pub const TICK: Duration = Duration::from_millis(1);

    setters! {
        /// Sets the number of clients that use the policy against one server.
        clients: NonZeroU64 = Some(clients);
        /// Sets the capacity of that server.
        capacity: Rate = Some(capacity);
        /// Sets the rate of calls of all clients together.
        requests: Rate = Some(requests);
        /// Sets the purpose of the calls.
        purpose: Purpose = Some(purpose);
        /// Sets the time from the start of a call after which its result is no longer useful.
        deadline: Duration = Some(deadline);
        /// Sets how long the worker owns the item: the visibility timeout of a queue, the lease of a lock.
        lease: Duration = Some(lease);
        /// Sets the time limit of the function that makes the call.
        invocation: Duration = Some(invocation);
        /// Sets the timeout of one attempt.
        attempt_timeout: Duration = Some(attempt_timeout);
        /// Sets the resolution of the timers. Default [`TICK`](Self::TICK).
        tick: Duration = Some(tick);
        /// Sets the number of layers that retry the same call, including this one.
        layers: NonZeroU32 = Some(layers);
        /// Sets whether executing the operation twice is safe.
        idempotency: Idempotency = Some(idempotency);
        /// Sets whether a budget limits the retries of each client. Not set means no.
        budget: Budgeted = Some(budget);
        /// Sets the `Retry-After` that the server usually sends.
        retry_after: Duration = Some(retry_after);
        /// Sets the number of requests that may queue at the server; further ones are rejected.
        backlog: NonZeroU32 = Some(backlog);
    }

    /// Returns whether callers wait for the result, who cannot be spread over seconds.
    pub(super) fn is_waited_for(&self) -> bool {
        use Purpose::{Far, Interactive, Near, Serverless};
        matches!(self.purpose, Some(Interactive | Serverless | Near | Far))
    }

    /// Returns the time the server needs to accept each client once: clients / capacity. `None` if either is not set.
    #[must_use]
    pub fn min_recovery_time(&self) -> Option<Duration> {
        let seconds = self.clients?.get() as f64 / self.capacity?.get();
        // Saturates at the longest duration.
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }
}

/// The words of the command line and their meanings.
const PURPOSES: [(&str, Purpose); 6] = [
    ("interactive", Purpose::Interactive),
    ("serverless", Purpose::Serverless),
    ("background", Purpose::Background),
    ("reconnecting", Purpose::Reconnecting),
    ("near", Purpose::Near),
    ("far", Purpose::Far),
];

const IDEMPOTENCIES: [(&str, Idempotency); 3] =
    [("yes", Idempotency::Yes), ("key", Idempotency::ByKey), ("no", Idempotency::No)];

/// Implements the text of a type by a list of words.
macro_rules! as_word {
    ($Type:ty, $words:ident, $known:literal) => {
        impl core::fmt::Display for $Type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str($crate::context::word_of(&$words, self))
            }
        }

        impl core::str::FromStr for $Type {
            type Err = stagger_core::text::ParseValueError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::context::named(&$words, text, $known)
            }
        }
    };
}

pub(super) use as_word;

as_word!(Purpose, PURPOSES, "interactive, serverless, background, reconnecting, near or far");
as_word!(Idempotency, IDEMPOTENCIES, "yes, key or no");

pub(crate) fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, named)| named == value).map_or("", |(word, _)| word)
}

pub(crate) fn named<T: Copy>(words: &[(&str, T)], text: &str, known: &'static str) -> Result<T, ParseValueError> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| ParseValueError::new(text, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_round_trips() {
        for (word, purpose) in PURPOSES {
            assert_eq!((word.parse(), purpose.to_string().as_str()), (Ok(purpose), word));
        }
        for (word, idempotency) in IDEMPOTENCIES {
            assert_eq!((word.parse(), idempotency.to_string().as_str()), (Ok(idempotency), word));
        }
    }

    #[test]
    fn the_error_for_an_unknown_word_lists_the_known_words() {
        let error = "batch".parse::<Purpose>().unwrap_err().to_string();
        assert!(error.contains("`batch`") && error.contains("background"), "{error}");
    }

    #[test]
    fn the_min_recovery_time_needs_both_values_and_saturates() {
        let many = DeploymentContext::default().clients(NonZeroU64::MAX);
        assert_eq!(many.min_recovery_time(), None);
        assert_eq!(many.capacity(Rate::per_second(1e-300).unwrap()).min_recovery_time(), Some(Duration::MAX));
    }
}
