use core::future::Future;

/// An async operation: a closure that starts one attempt each time it is called.
///
/// Implemented for every closure without arguments that returns a future.
pub trait Operation {
    /// The future of one attempt.
    type Future: Future;

    /// Starts one attempt.
    fn start(&mut self) -> Self::Future;
}

impl<F, O> Operation for F
where
    F: FnMut() -> O,
    O: Future,
{
    type Future = O;

    #[inline]
    fn start(&mut self) -> O {
        self()
    }
}

/// What the attempts of `F` return.
pub(crate) type Returned<F> = <<F as Operation>::Future as Future>::Output;
