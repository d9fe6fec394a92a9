//! From what an operation gives to an outcome: first its shape (is there a mark? is the value what was wanted?), then
//! the rule for its error.

use core::any::Any;
use core::fmt;

use crate::{Marked, Outcome, classify};

/// What an operation gave: a value, or an error with the mark that the operation put on it.
pub(crate) type Judged<T, E, M> = Result<T, (E, M)>;

/// How the result of an operation is read.
pub trait Reading<Out> {
    /// What the caller gets.
    type Value;
    /// What the caller gets instead.
    type Error;
    /// What the operation can say of its error; nothing, where it has no way to say anything.
    type Mark: Into<Option<Outcome>> + Default;

    /// Reads one result.
    fn read(&mut self, out: Out) -> Judged<Self::Value, Self::Error, Self::Mark>;
}

/// As it is: `Result<T, E>`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

/// The mark of an error that cannot have one: an `Option<Outcome>` of size zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmarked;

impl From<Unmarked> for Option<Outcome> {
    #[inline]
    fn from(_: Unmarked) -> Self {
        None
    }
}

impl<T, E> Reading<Result<T, E>> for Plain {
    type Value = T;
    type Error = E;
    type Mark = Unmarked;

    #[inline]
    fn read(&mut self, out: Result<T, E>) -> Judged<T, E, Unmarked> {
        out.map_err(|error| (error, Unmarked))
    }
}

/// With the marks of [`Marked`], which are taken off.
#[derive(Clone, Copy, Debug, Default)]
pub struct WithMarks;

impl<T, E> Reading<Result<T, Marked<E>>> for WithMarks {
    type Value = T;
    type Error = E;
    type Mark = Option<Outcome>;

    #[inline]
    fn read(&mut self, out: Result<T, Marked<E>>) -> Judged<T, E, Option<Outcome>> {
        out.map_err(Marked::into_parts)
    }
}

/// With a look at the value, which may turn out to be a failure.
#[derive(Clone, Copy)]
pub struct Validated<P, C> {
    pub(crate) before: P,
    pub(crate) check: C,
}

impl<P: fmt::Debug, C> fmt::Debug for Validated<P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validated").field("before", &self.before).finish_non_exhaustive()
    }
}

impl<Out, U, P, C> Reading<Out> for Validated<P, C>
where
    P: Reading<Out>,
    C: FnMut(P::Value) -> Result<U, P::Error>,
{
    type Value = U;
    type Error = P::Error;
    type Mark = P::Mark;

    #[inline]
    fn read(&mut self, out: Out) -> Judged<U, P::Error, P::Mark> {
        let value = self.before.read(out)?;
        (self.check)(value).map_err(|error| (error, P::Mark::default()))
    }
}

/// What an error without a mark means.
pub trait Rule<E> {
    /// The outcome of an attempt that ended with this error.
    fn outcome(&self, error: &E) -> Outcome;
}

/// The built-in rules: [`classify::built_in`].
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl<E: Any> Rule<E> for BuiltIn {
    fn outcome(&self, error: &E) -> Outcome {
        classify::built_in(error)
    }
}

/// Transient if a predicate says so, permanent otherwise.
#[derive(Clone, Copy)]
pub struct When<F>(pub(crate) F);

impl<F> fmt::Debug for When<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("When")
    }
}

impl<E, F: Fn(&E) -> bool> Rule<E> for When<F> {
    fn outcome(&self, error: &E) -> Outcome {
        if (self.0)(error) { Outcome::TRANSIENT } else { Outcome::Permanent }
    }
}

/// Whatever a function says.
#[derive(Clone, Copy)]
pub struct Classify<F>(pub(crate) F);

impl<F> fmt::Debug for Classify<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Classify")
    }
}

impl<E, F: Fn(&E) -> Outcome> Rule<E> for Classify<F> {
    fn outcome(&self, error: &E) -> Outcome {
        (self.0)(error)
    }
}

impl<E, R: Rule<E> + ?Sized> Rule<E> for &R {
    fn outcome(&self, error: &E) -> Outcome {
        (**self).outcome(error)
    }
}
