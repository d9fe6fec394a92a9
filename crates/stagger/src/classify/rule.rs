//! From the result of an operation to an outcome: first its shape (does it have a mark, is the value valid?), then the
//! rule for its error.

use core::any::{Any, TypeId};
use core::error::Error;
use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

use stagger_core::Outcome;

use super::built_in::{built_in_any, chain, mark};
use super::marked::OperationError;
use crate::error::links::{as_error, as_type, link_as_type, links};

/// A value, or an error with the mark that the operation put on it.
pub(crate) type ReadResult<T, E, M> = Result<T, (E, M)>;

/// Reads the results of an operation.
#[diagnostic::on_unimplemented(
    message = "the operation must return a `Result`, and returns `{Out}`",
    label = "expected an operation that returns a `Result`",
    note = "return `Ok(value)` if there is nothing to retry, and `Err(error)` for a failure; to retry because of \
            a value, add `.validate(..)`"
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
        match (error.mark(), rules) {
            (Some(mark), _) => mark,
            (None, Some(rules)) => rules.outcome(error.as_any()),
            (None, None) => built_in_any(error.as_any()),
        }
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

/// Rules by type of error.
#[derive(Clone, Default)]
pub struct RuleSet(HashMap<TypeId, Arc<dyn TypeRule>>);

/// The rule for errors of one type, if there is one, and how to recognize errors of that type.
trait TypeRule: Send + Sync {
    /// Returns the outcome of the operation's error, if it is of this type.
    fn outcome(&self, error: &dyn Any) -> Option<Outcome>;

    /// Returns the outcome of a link of its chain, if it is of this type.
    fn outcome_of_link(&self, link: &(dyn Error + 'static)) -> Option<Outcome>;

    /// Returns the operation's error as a trait object, if it is of this type.
    fn as_error<'e>(&self, error: &'e dyn Any) -> Option<&'e (dyn Error + 'static)>;
}

/// A rule for errors of type `E`; `None` if only their sources are examined.
struct ErrorRule<E>(Option<BoxedRule<E>>);

/// A rule for an operation whose error is an `E`, which need not implement [`Error`].
struct ExactRule<E>(BoxedRule<E>);

type BoxedRule<E> = Box<dyn Fn(&E) -> Outcome + Send + Sync>;

impl<E: Error + 'static> TypeRule for ErrorRule<E> {
    fn outcome(&self, error: &dyn Any) -> Option<Outcome> {
        let rule = self.0.as_ref()?;
        Some(rule(as_type(error)?))
    }

    fn outcome_of_link(&self, link: &(dyn Error + 'static)) -> Option<Outcome> {
        let rule = self.0.as_ref()?;
        Some(rule(link_as_type(link)?))
    }

    fn as_error<'e>(&self, error: &'e dyn Any) -> Option<&'e (dyn Error + 'static)> {
        as_type::<E>(error).map(|error| error as &dyn Error)
    }
}

impl<E: 'static> TypeRule for ExactRule<E> {
    fn outcome(&self, error: &dyn Any) -> Option<Outcome> {
        as_type(error).map(&self.0)
    }

    fn outcome_of_link(&self, _: &(dyn Error + 'static)) -> Option<Outcome> {
        None
    }

    fn as_error<'e>(&self, _: &'e dyn Any) -> Option<&'e (dyn Error + 'static)> {
        None
    }
}

impl RuleSet {
    /// Sets the rule for errors of type `E`.
    pub(crate) fn set<E: Error + 'static>(&mut self, rule: impl Fn(&E) -> Outcome + Send + Sync + 'static) {
        self.0.insert(TypeId::of::<E>(), Arc::new(ErrorRule::<E>(Some(Box::new(rule)))));
    }

    /// Sets the rule for operations whose error is an `E`.
    pub(crate) fn set_exact<E: 'static>(&mut self, rule: impl Fn(&E) -> Outcome + Send + Sync + 'static) {
        self.0.insert(TypeId::of::<E>(), Arc::new(ExactRule::<E>(Box::new(rule))));
    }

    /// Examines the sources of errors of type `E`, unless they have a rule.
    pub(crate) fn look_into<E: Error + 'static>(&mut self) {
        self.0.entry(TypeId::of::<E>()).or_insert_with(|| Arc::new(ErrorRule::<E>(None)));
    }

    /// Returns the outcome by the outermost error of the chain that has a mark or a rule.
    pub(crate) fn explicit(&self, error: &dyn Any) -> Option<Outcome> {
        // The operation's own type comes first. It need not implement `Error`, so no chain may contain it.
        let by_type = self.0.values().find_map(|rule| rule.outcome(error));
        if by_type.is_some() {
            return by_type;
        }
        for link in links(self.as_error(error)?) {
            let by_mark = mark(link);
            if by_mark.is_some() {
                return by_mark;
            }
            let by_type = self.0.values().find_map(|rule| rule.outcome_of_link(link));
            if by_type.is_some() {
                return by_type;
            }
        }
        None
    }

    /// Returns the outcome by the rules, or else by the built-in ones.
    pub(crate) fn outcome(&self, error: &dyn Any) -> Outcome {
        if let Some(outcome) = self.explicit(error) {
            return outcome;
        }
        let known = match self.as_error(error) {
            Some(error) => chain(error),
            None => None,
        };
        known.unwrap_or(Outcome::TRANSIENT)
    }

    /// Returns the error as a trait object, if it is of a known type or of one with a rule.
    pub(crate) fn as_error<'e>(&self, error: &'e dyn Any) -> Option<&'e (dyn Error + 'static)> {
        match as_error(error) {
            Some(known) => Some(known),
            None => self.0.values().find_map(|rule| rule.as_error(error)),
        }
    }
}

impl fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rules({})", self.0.len())
    }
}

/// An error type that a rule of a [`Retrier`](crate::Retrier) can be for: every type that implements
/// [`Error`](core::error::Error).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `std::error::Error`, so the rule could not find it inside other errors",
    label = "not an error type",
    note = "implement `std::error::Error` for it, or set the rule with `classify_exactly`"
)]
pub trait RuleError: Error + 'static {}

#[diagnostic::do_not_recommend]
impl<E: Error + 'static> RuleError for E {}
