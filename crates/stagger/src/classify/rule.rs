//! From the result of an operation to an outcome: first its shape (does it have a mark, is the value valid?), then the
//! rule for its error.

use core::any::Any;
use core::fmt;

use stagger_core::Outcome;

use super::built_in::built_in_any;
use super::rules::RuleSet;
use crate::classify::marked::OperationError;

/// A value, or an error with the mark that the operation put on it.
pub(crate) type ReadResult<T, E, M> = Result<T, (E, M)>;

/// Reads the results of an operation.
#[diagnostic::on_unimplemented(
    message = "the operation must return a `Result`, and returns `{Out}`",
    label = "expected an operation that returns a `Result`",
    note = "return `Ok(value)` if there is nothing to retry, and `Err(error)` for a failure; to retry because of a value, add `.validate(..)`"
)]
pub trait ResultReader<Out> {
    /// The value returned to the caller.
    type Value;
    /// The error returned to the caller.
    type Error;
    /// The mark on an error; zero-sized where errors cannot be marked.
    type Mark: Into<Option<Outcome>> + Default;

    /// Reads one result.
    fn read(&mut self, out: Out) -> ReadResult<Self::Value, Self::Error, Self::Mark>;
}

/// A `Result<T, E>`; the marks of [`Marked`](crate::Marked) errors are removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl<T, E: OperationError> ResultReader<Result<T, E>> for Plain {
    type Value = T;
    type Error = E::Inner;
    type Mark = E::Mark;

    #[inline]
    fn read(&mut self, out: Result<T, E>) -> ReadResult<T, E::Inner, E::Mark> {
        out.map_err(E::into_parts)
    }
}

/// A result whose values are checked, and may turn out to be failures.
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

impl<Out, U, P, C> ResultReader<Out> for Validated<P, C>
where
    P: ResultReader<Out>,
    C: FnMut(P::Value) -> Result<U, P::Error>,
{
    type Value = U;
    type Error = P::Error;
    type Mark = P::Mark;

    #[inline]
    fn read(&mut self, out: Out) -> ReadResult<U, P::Error, P::Mark> {
        let value = self.before.read(out)?;
        (self.check)(value).map_err(|error| (error, P::Mark::default()))
    }
}

/// Classifies errors without a mark.
pub trait Rule<E> {
    /// Returns the outcome of an attempt that ended with this error, in a call with these rules.
    fn outcome(&self, error: &E, rules: Option<&RuleSet>) -> Outcome;
}

/// The rules of the call's retrier, if it has one, or else the built-in rules: [`classify::built_in`].
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl<E: OperationError + Any> Rule<E> for BuiltIn {
    fn outcome(&self, error: &E, rules: Option<&RuleSet>) -> Outcome {
        error.mark().unwrap_or_else(|| match rules {
            Some(rules) => rules.outcome(error.as_any()),
            None => built_in_any(error.as_any()),
        })
    }
}

/// Transient if the predicate returns true, permanent otherwise.
#[derive(Clone, Copy)]
pub struct When<F>(pub(crate) F);

impl<F> fmt::Debug for When<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("When")
    }
}

impl<E, F: Fn(&E) -> bool> Rule<E> for When<F> {
    fn outcome(&self, error: &E, _: Option<&RuleSet>) -> Outcome {
        if (self.0)(error) { Outcome::TRANSIENT } else { Outcome::Permanent }
    }
}

/// The outcome that a function returns.
#[derive(Clone, Copy)]
pub struct Classify<F>(pub(crate) F);

impl<F> fmt::Debug for Classify<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Classify")
    }
}

impl<E, F: Fn(&E) -> Outcome> Rule<E> for Classify<F> {
    fn outcome(&self, error: &E, _: Option<&RuleSet>) -> Outcome {
        (self.0)(error)
    }
}
