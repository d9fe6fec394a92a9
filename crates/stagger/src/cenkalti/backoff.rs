use core::time::Duration;

/// How long to wait before each retry.
///
/// It is one call's own: `&mut`, so that two calls cannot share one by mistake. What implements it can be lent
/// (`&mut b`) or boxed.
///
/// ```
/// use std::time::Duration;
/// use stagger::cenkalti::{self, BackOff};
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
/// let mut b = cenkalti::with_max_retries(Linear(0), 2);
/// assert_eq!([b.next_backoff(), b.next_backoff(), b.next_backoff()].map(|d| d.map(|d| d.as_secs())), [Some(1), Some(2), None]);
/// ```
pub trait BackOff {
    /// The wait before the next retry; `None`: there is no further retry.
    fn next_backoff(&mut self) -> Option<Duration>;

    /// Back to the beginning. Every call and every ticker begins with it.
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
