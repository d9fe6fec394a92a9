use core::any::Any;
use core::error::Error;
use core::fmt;

use crate::rule::{Judged, Reading};
use crate::{Marked, Outcome};

/// A boxed error.
type Boxed = Box<dyn Error + Send + Sync>;

/// Marks an error as one that would come again: no retry.
///
/// It is for boxed errors, and found wherever it is in the chain of sources, as `errors.As` does it. At the top it is
/// taken off, and the caller gets the error inside; deeper down the whole chain is given, so that nothing that was said
/// on the way is lost. Where the error has a type of its own, mark it with [`Marked::permanent`], and say
/// [`with_marks`](super::Call::with_marks).
///
/// ```
/// use std::error::Error;
/// use stagger::cenkalti::{self, ExponentialBackOff, permanent};
///
/// type Answer = Result<(), Box<dyn Error + Send + Sync>>;
///
/// let mut calls = 0;
/// let operation = || -> Answer {
///     calls += 1;
///     Err(permanent("bad request"))?
/// };
/// let error = cenkalti::blocking::retry(operation, ExponentialBackOff::new()).run().unwrap_err();
/// assert_eq!((error.to_string().as_str(), calls), ("bad request", 1));
/// assert!(!error.is::<cenkalti::PermanentError>());
/// ```
pub fn permanent(error: impl Into<Boxed>) -> PermanentError {
    PermanentError(error.into())
}

/// An error that would come again: see [`permanent`].
#[derive(Debug)]
pub struct PermanentError(Boxed);

impl PermanentError {
    /// The first one in the chain of sources, which begins with `error` itself.
    pub fn find<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        core::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
    }

    /// The error inside.
    #[must_use]
    pub fn into_inner(self) -> Boxed {
        self.0
    }

    /// Takes the error out of what is about to be thrown away.
    fn take(&mut self) -> Boxed {
        // A box of nothing: no allocation.
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

/// Reads what [`permanent`] has marked, where the type of the error can hold it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwrapping;

impl<T, E: Any> Reading<Result<T, E>> for Unwrapping {
    type Value = T;
    type Error = E;
    type Mark = Option<Outcome>;

    fn read(&mut self, out: Result<T, E>) -> Judged<T, E, Option<Outcome>> {
        out.map_err(|mut error| {
            let mark = unwrap(&mut error).then_some(Outcome::Permanent);
            (error, mark)
        })
    }
}

/// Whether there is a mark; one at the top is taken off.
fn unwrap(error: &mut dyn Any) -> bool {
    if let Some(boxed) = error.downcast_mut::<Boxed>() {
        let inside = boxed.downcast_mut().map(PermanentError::take);
        inside.map(|inside| *boxed = inside).is_some() || PermanentError::find(&**boxed).is_some()
    } else if let Some(boxed) = error.downcast_mut::<Box<dyn Error>>() {
        let inside = boxed.downcast_mut().map(PermanentError::take);
        inside.map(|inside| *boxed = inside).is_some() || PermanentError::find(&**boxed).is_some()
    } else if let Some(error) = error.downcast_ref::<std::io::Error>() {
        error.get_ref().is_some_and(|inside| PermanentError::find(inside).is_some())
    } else {
        error.is::<PermanentError>()
    }
}

/// What a mark says here: it knows no other than permanent.
pub(super) fn is_permanent(mark: impl Into<Option<Outcome>>) -> bool {
    mark.into() == Some(Outcome::Permanent)
}

/// So that `permanent` can be left with `?` where the errors are faults of boxed ones.
impl From<PermanentError> for Marked<Boxed> {
    fn from(error: PermanentError) -> Self {
        Self::permanent(error.0)
    }
}
