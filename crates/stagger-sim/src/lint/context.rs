use core::fmt;
use core::num::{NonZeroU32, NonZeroU64};
use core::str::FromStr;
use core::time::Duration;

use super::{ParseValueError, Rate};

/// What is known of the place where a policy is used. Everything is optional: a rule that needs to know something
/// which is not said stays silent.
///
/// ```
/// use core::num::NonZeroU64;
/// use stagger_sim::lint::{DeploymentContext, Purpose, Rate};
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
}

/// What the calls are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Purpose {
    /// A person waits.
    Interactive,
    /// Inside a function that is billed by its time.
    Serverless,
    /// A job that nobody waits for.
    Background,
    /// A connection that is kept up.
    Reconnecting,
    /// An API that is near: the same data centre, a sidecar, a cache.
    Near,
    /// A database, or a service that is far away.
    Far,
}

/// Whether the operation may be carried out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Idempotency {
    /// It comes to the same.
    Yes,
    /// The server recognises the repetition by a key that all attempts have in common.
    ByKey,
    /// It would be done twice.
    No,
}

/// Whether a budget bounds the retries of all calls together. Complete: there is one or there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Budgeted {
    /// One does.
    Yes,
    /// None does.
    No,
}

impl DeploymentContext {
    /// The resolution of the timers that are slept on, unless [`tick`](Self::tick) says otherwise: that of tokio.
    pub const TICK: Duration = Duration::from_millis(1);

    /// How many clients use the policy against one server.
    pub const fn clients(mut self, clients: NonZeroU64) -> Self {
        self.clients = Some(clients);
        self
    }

    /// What that server takes.
    pub const fn capacity(mut self, capacity: Rate) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// How many calls are begun, by all clients together.
    pub const fn requests(mut self, requests: Rate) -> Self {
        self.requests = Some(requests);
        self
    }

    /// What the calls are for.
    pub const fn purpose(mut self, purpose: Purpose) -> Self {
        self.purpose = Some(purpose);
        self
    }

    /// How long after its start a call is of use to whoever made it.
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// How long what is worked on stays ours: the visibility time of a queue, the lease of a lock.
    pub const fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// How long the function that makes the call may run.
    pub const fn invocation(mut self, limit: Duration) -> Self {
        self.invocation = Some(limit);
        self
    }

    /// How long one attempt may take.
    pub const fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// The resolution of the timers that are slept on. Default [`TICK`](Self::TICK).
    pub const fn tick(mut self, tick: Duration) -> Self {
        self.tick = Some(tick);
        self
    }

    /// How many layers retry the same call, this one included.
    pub const fn layers(mut self, layers: NonZeroU32) -> Self {
        self.layers = Some(layers);
        self
    }

    /// Whether the operation may be carried out twice.
    pub const fn idempotency(mut self, idempotency: Idempotency) -> Self {
        self.idempotency = Some(idempotency);
        self
    }

    /// Whether a budget bounds the retries. Not said is as good as no.
    pub const fn budget(mut self, budget: Budgeted) -> Self {
        self.budget = Some(budget);
        self
    }

    /// What the server usually asks for: its `Retry-After`.
    pub const fn retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// The time in which the server can take all clients, each of them once: their number by its capacity. `None` if
    /// either is not known.
    #[must_use]
    pub fn min_recovery_time(&self) -> Option<Duration> {
        let seconds = self.clients?.get() as f64 / self.capacity?.get();
        // Beyond what a duration holds it is as long as one can be.
        Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }
}

/// The words of the command line, each with what it stands for.
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

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(&PURPOSES, self))
    }
}

impl FromStr for Purpose {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, ParseValueError> {
        named(&PURPOSES, text, "interactive, serverless, background, reconnecting, near or far")
    }
}

impl fmt::Display for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(&IDEMPOTENCIES, self))
    }
}

impl FromStr for Idempotency {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<Self, ParseValueError> {
        named(&IDEMPOTENCIES, text, "yes, key or no")
    }
}

fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words.iter().find(|(_, named)| named == value).map_or("", |(word, _)| word)
}

fn named<T: Copy>(words: &[(&str, T)], text: &str, known: &'static str) -> Result<T, ParseValueError> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| ParseValueError::new(text, known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_to_what_it_stands_for() {
        for (word, purpose) in PURPOSES {
            assert_eq!((word.parse(), purpose.to_string().as_str()), (Ok(purpose), word));
        }
        for (word, idempotency) in IDEMPOTENCIES {
            assert_eq!((word.parse(), idempotency.to_string().as_str()), (Ok(idempotency), word));
        }
    }

    #[test]
    fn another_word_is_refused_with_those_that_are_known() {
        let error = "batch".parse::<Purpose>().unwrap_err().to_string();
        assert!(error.contains("`batch`") && error.contains("background"), "{error}");
    }

    #[test]
    fn the_window_needs_both_and_never_overflows() {
        let many = DeploymentContext::default().clients(NonZeroU64::MAX);
        assert_eq!(many.min_recovery_time(), None);
        assert_eq!(many.capacity(Rate::per_second(1e-300).unwrap()).min_recovery_time(), Some(Duration::MAX));
    }
}
