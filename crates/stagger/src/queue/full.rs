use core::error::Error;
use core::fmt;

/// The error of a push to a queue at capacity; contains the rejected item.
///
/// Complete, like the errors of the standard library's channels: the item is all there is to return.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct QueueFull<T>(pub T);

impl<T> fmt::Debug for QueueFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueueFull(..)")
    }
}

impl<T> fmt::Display for QueueFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is at capacity; raise its capacity, or push again when items have completed")
    }
}

impl<T> Error for QueueFull<T> {}
