//! What a call needs to know of its operation: the type that it returns, and which of its errors are permanent.

use core::any::Any;
use core::error::Error;
use core::fmt;

use stagger::{Marked, Outcome};

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

/// Errors may hold the marks of [`permanent`](crate::permanent()).
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

/// A boxed error.
type Boxed = Box<dyn Error + Send + Sync>;

/// Marks an error as permanent: it is not retried.
///
/// It is for boxed errors, and is found anywhere in the chain of sources, like `errors.As` does. At the top of the
/// chain the mark is removed, and the caller gets the inner error; deeper in the chain the whole chain is returned, so
/// that no context is lost. For a typed error, use [`Marked::permanent`] and [`with_marks`](crate::Call::with_marks).
///
/// ```
/// use std::error::Error;
/// use stagger_cenkalti::{self as backoff, ExponentialBackOff, permanent};
///
/// type Answer = Result<(), Box<dyn Error + Send + Sync>>;
///
/// let mut calls = 0;
/// let operation = || -> Answer {
///     calls += 1;
///     Err(permanent("bad request"))?
/// };
/// let error = backoff::blocking::retry(operation, ExponentialBackOff::new()).run().unwrap_err();
/// assert_eq!((error.to_string().as_str(), calls), ("bad request", 1));
/// assert!(!error.is::<backoff::PermanentError>());
/// ```
pub fn permanent(error: impl Into<Boxed>) -> PermanentError {
    PermanentError(error.into())
}

/// An error that is permanent: see [`permanent`].
#[derive(Debug)]
pub struct PermanentError(Boxed);

impl PermanentError {
    /// Returns the first permanent error in the chain of sources, starting with `error` itself.
    pub fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        core::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
    }

    /// Returns the inner error.
    #[must_use]
    pub fn into_inner(self) -> Boxed {
        self.0
    }

    /// Takes the inner error out of a value that is about to be discarded.
    fn take(&mut self) -> Boxed {
        // Boxing a zero-sized value does not allocate.
        core::mem::replace(&mut self.0, Box::new(fmt::Error))
    }
}

impl fmt::Display for PermanentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for PermanentError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

/// Returns whether the error is marked as permanent, and removes a mark at the top of the chain.
pub(crate) fn take_mark(error: &mut dyn Any) -> bool {
    if let Some(boxed) = error.downcast_mut::<Boxed>() {
        if let Some(mark) = boxed.downcast_mut::<PermanentError>() {
            *boxed = mark.take();
            return true;
        }
        PermanentError::find(&**boxed).is_some()
    } else if let Some(boxed) = error.downcast_mut::<Box<dyn Error>>() {
        if let Some(mark) = boxed.downcast_mut::<PermanentError>() {
            *boxed = mark.take();
            return true;
        }
        PermanentError::find(&**boxed).is_some()
    } else if let Some(error) = error.downcast_ref::<std::io::Error>() {
        error.get_ref().is_some_and(|inside| PermanentError::find(inside).is_some())
    } else {
        error.is::<PermanentError>()
    }
}

/// Allows `?` on [`permanent`] errors in operations that return marked boxed errors.
impl From<PermanentError> for Marked<Boxed> {
    fn from(error: PermanentError) -> Self {
        Self::permanent(error.0)
    }
}
