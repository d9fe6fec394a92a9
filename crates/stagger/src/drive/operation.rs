use core::future::Future;

/// An async operation: a closure without arguments that starts one attempt each time it is called, and returns its
/// future. An `async` closure is one, and so is an `async fn` without parameters.
///
/// Implemented for every such closure.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an async operation, which is a closure that returns a new future each time it is called",
    label = "expected a closure such as `async || fetch().await`",
    note = "pass the closure and not its future; for blocking code, use `stagger::blocking`",
    note = "an `async` closure must not change what it captures: pass it with `Retrier::run_with`, or write the loop with `Retrier::call`",
    note = "a generic operation with the bound `AsyncFn` is called in a closure: `async || operation().await`",
    note = "an `async move` closure must not borrow what it captures: leave out `move`, or clone the variable for each attempt"
)]
pub trait Operation: FnMut() -> <Self as Operation>::Future {
    /// The future of one attempt.
    type Future: Future;
}

#[diagnostic::do_not_recommend]
impl<F, O> Operation for F
where
    F: FnMut() -> O,
    O: Future,
{
    type Future = O;
}

/// What the attempts of `F` return.
pub(crate) type Returned<F> = <<F as Operation>::Future as Future>::Output;
