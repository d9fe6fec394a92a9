use core::time::Duration;

/// A sequence of waits before retries.
///
/// It belongs to one call: methods take `&mut self`, so two calls cannot share one by mistake. `&mut B` and `Box<B>`
/// are backoffs, too.
///
/// ```
/// use std::time::Duration;
/// use stagger_cenkalti::{self as backoff, BackOff};
///
/// /// 1 s, 2 s, 3 s, …
/// struct Linear(u32);
///
/// impl BackOff for Linear {
///     fn next_backoff(&mut self) -> Option<Duration> {
///         self.0 += 1;
///         Some(Duration::from_secs(1) * self.0)
///     }
///
///     fn reset(&mut self) {
///         self.0 = 0;
///     }
/// }
///
/// let mut b = backoff::with_max_retries(Linear(0), 2);
/// assert_eq!([b.next_backoff(), b.next_backoff(), b.next_backoff()].map(|d| d.map(|d| d.as_secs())), [Some(1), Some(2), None]);
/// ```
pub trait BackOff {
    /// Returns the wait before the next retry, or `None` if there is no further retry.
    fn next_backoff(&mut self) -> Option<Duration>;

    /// Resets the backoff to its initial state. Every call and every ticker starts by calling it.
    fn reset(&mut self);
}

impl<B: BackOff + ?Sized> BackOff for &mut B {
    fn next_backoff(&mut self) -> Option<Duration> {
        (**self).next_backoff()
    }

    fn reset(&mut self) {
        (**self).reset();
    }
}

impl<B: BackOff + ?Sized> BackOff for Box<B> {
    fn next_backoff(&mut self) -> Option<Duration> {
        (**self).next_backoff()
    }

    fn reset(&mut self) {
        (**self).reset();
    }
}
