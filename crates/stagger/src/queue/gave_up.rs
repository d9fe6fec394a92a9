use core::error::Error;
use core::fmt;

use stagger_core::StopReason;

/// An item that is not attempted again; contains the item.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GaveUp<T> {
    /// The item.
    pub item: T,
    /// Why the item is not attempted again.
    pub reason: GiveUpReason,
    /// Number of attempts made.
    pub attempts: u32,
}

/// Why a queue does not accept an item for another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GiveUpReason {
    /// The policy or a guard decided to stop.
    Stop(StopReason),
    /// The queue is at capacity. The item's permits were released.
    Full,
}

impl<T> fmt::Debug for GaveUp<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { item: _, reason, attempts } = self;
        f.debug_struct("GaveUp").field("reason", reason).field("attempts", attempts).finish_non_exhaustive()
    }
}

/// Formats as a lower-case fragment: "gave up after 3 attempts: every attempt was used".
impl<T> fmt::Display for GaveUp<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {} attempt{plural}: ", self.attempts)?;
        match self.reason {
            GiveUpReason::Stop(stop) => stop.fmt(f),
            GiveUpReason::Full => f.write_str("the queue is at capacity; raise its capacity"),
        }
    }
}

impl<T> Error for GaveUp<T> {}
