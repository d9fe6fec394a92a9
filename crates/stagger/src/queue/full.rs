use core::error::Error;
use core::fmt;

/// As many are pending as may be: the item, given back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct QueueFull<T>(pub T);

impl<T> fmt::Debug for QueueFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueueFull(..)")
    }
}

impl<T> fmt::Display for QueueFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is full")
    }
}

impl<T> Error for QueueFull<T> {}
