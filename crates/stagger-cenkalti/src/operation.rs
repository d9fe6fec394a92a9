//! What a call needs to know of its operation: the type that it returns, and which of its errors are permanent.

use core::any::Any;

use stagger::{Marked, Outcome};

use crate::permanent::take_mark;

/// An operation; any `FnMut() -> O` is one. It gives its output a name that a future's fields can use.
pub trait Operation {
    /// The result, or a future of it.
    type Output;

    /// Calls the operation.
    fn call(&mut self) -> Self::Output;
}

impl<F: FnMut() -> O, O> Operation for F {
    type Output = O;

    fn call(&mut self) -> O {
        self()
    }
}

/// The result of an operation whose caller gets an `E`: its errors are `E`, or [`Marked<E>`].
pub trait OperationResult<E> {
    /// The value returned to the caller.
    type Value;

    /// Returns the value, or the error without its mark and whether it is permanent.
    ///
    /// # Errors
    /// Returns the operation's error.
    fn read(self) -> Result<Self::Value, (E, bool)>;
}

/// Errors may hold the marks of [`permanent`](crate::permanent).
impl<V, E: Any> OperationResult<E> for Result<V, E> {
    type Value = V;

    fn read(self) -> Result<V, (E, bool)> {
        self.map_err(|mut error| {
            let is_permanent = take_mark(&mut error);
            (error, is_permanent)
        })
    }
}

impl<V, E> OperationResult<E> for Result<V, Marked<E>> {
    type Value = V;

    fn read(self) -> Result<V, (E, bool)> {
        self.map_err(|marked| {
            let is_permanent = marked.mark() == Some(&Outcome::Permanent);
            (marked.into_error(), is_permanent)
        })
    }
}
