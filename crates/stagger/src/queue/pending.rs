use core::time::Duration;

use stagger_core::machine::Paused;

/// A pending retry, detached from its queue: returned by
/// [`RetryQueue::into_pending`](super::RetryQueue::into_pending) on shutdown, and accepted by
/// [`RetryQueue::restore`](super::RetryQueue::restore).
///
/// It stores the remaining wait instead of an instant, so it does not depend on a clock: it can be stored for any time,
/// and restored in another process. With the feature `serde` it can be serialized.
///
/// ```
/// use std::time::Duration;
/// use stagger::queue::RetryQueue;
/// use stagger::{Outcome, Policy, policy};
///
/// const POLICY: Policy = policy!(exponential(secs(1), secs(60)).max_attempts(5));
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// let mut queue = RetryQueue::new(POLICY);
/// let job = queue.begin("a message")?;
/// let key = queue.push_retry(job, Outcome::TRANSIENT)?.key;
/// // A process that can be killed at any time persists it now.
/// assert!(queue.pending(key).is_some());
///
/// // A process that shuts down in an orderly way persists everything at the end.
/// let pending: Vec<_> = queue.into_pending().collect();
///
/// let mut queue = RetryQueue::new(POLICY);
/// for pending in pending {
///     queue.restore(pending.advanced_by(Duration::from_millis(20)))?;
/// }
/// assert_eq!(queue.next().await.unwrap()?.number(), 2);
/// # Ok::<(), Box<dyn core::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Pending<T> {
    /// The item.
    pub item: T,
    /// Remaining wait; zero if the item was due. At most 2⁵³ − 1 s are written by `serde`.
    #[cfg_attr(feature = "serde", serde(serialize_with = "serialize_safely"))]
    pub left: Duration,
    /// State of the retries; [`Paused::attempt`] is the number of attempts made, and [`Paused::is_in_flight`] says
    /// whether the last of them was in progress.
    pub paused: Paused,
}

impl<T> Pending<T> {
    /// Creates a pending retry from its stored parts.
    pub const fn new(item: T, left: Duration, paused: Paused) -> Self {
        Self { item, left, paused }
    }

    /// Advances the item's clock by `by`, to account for downtime: the remaining wait shrinks, and time limits count
    /// the downtime, too.
    #[must_use]
    pub fn advanced_by(self, by: Duration) -> Self {
        Self { left: self.left.saturating_sub(by), paused: self.paused.advanced_by(by), ..self }
    }
}

/// Writes a wait whose seconds survive programs whose numbers are all `f64`, such as JavaScript.
#[cfg(feature = "serde")]
fn serialize_safely<S: serde::Serializer>(left: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    const LONGEST: Duration = Duration::from_secs((1 << f64::MANTISSA_DIGITS) - 1);
    serde::Serialize::serialize(&(*left).min(LONGEST), serializer)
}
