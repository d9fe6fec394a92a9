use core::any::{Any, TypeId};
use core::error::Error;
use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

use stagger_core::Outcome;

use super::built_in::{chain, mark};
use crate::error::links::{as_error, as_type, link_as_type, links};

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
        self.0.as_ref().and_then(|rule| as_type(error).map(rule))
    }

    fn outcome_of_link(&self, link: &(dyn Error + 'static)) -> Option<Outcome> {
        self.0.as_ref().and_then(|rule| link_as_type(link).map(rule))
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
        let rules = || self.0.values();
        rules().find_map(|rule| rule.outcome(error)).or_else(|| {
            links(self.as_error(error)?)
                .find_map(|link| mark(link).or_else(|| rules().find_map(|rule| rule.outcome_of_link(link))))
        })
    }

    /// Returns the outcome by the rules, or else by the built-in ones.
    pub(crate) fn outcome(&self, error: &dyn Any) -> Outcome {
        let built_in = || self.as_error(error).and_then(chain);
        self.explicit(error).or_else(built_in).unwrap_or(Outcome::TRANSIENT)
    }

    /// Returns the error as a trait object, if it is of a known type or of one with a rule.
    pub(crate) fn as_error<'e>(&self, error: &'e dyn Any) -> Option<&'e (dyn Error + 'static)> {
        as_error(error).or_else(|| self.0.values().find_map(|rule| rule.as_error(error)))
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
