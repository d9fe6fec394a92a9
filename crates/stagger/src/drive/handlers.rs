use core::fmt;

use stagger_core::Outcome;

use crate::classify::rule::{BuiltIn, Plain, ReadResult, ResultReader, Rule};
use crate::classify::rules::RuleSet;
use crate::retrier::event::{Listen, Silent};

/// What a call does with a result: reads it, classifies its error, and reports the decision.
#[derive(Clone, Copy)]
pub struct Handlers<P = Plain, R = BuiltIn, W = Silent> {
    pub(crate) reader: P,
    pub(crate) rule: R,
    pub(crate) listener: W,
}

impl Handlers {
    /// Reads plain results, classifies errors by the rules of the retrier or the built-in ones, and reports nothing.
    pub(crate) const DEFAULT: Self = Self { reader: Plain, rule: BuiltIn, listener: Silent };
}

impl<P, R, W> Handlers<P, R, W> {
    pub(crate) fn with_reader<P2>(self, wrap: impl FnOnce(P) -> P2) -> Handlers<P2, R, W> {
        Handlers { reader: wrap(self.reader), rule: self.rule, listener: self.listener }
    }

    pub(crate) fn with_rule<R2>(self, rule: R2) -> Handlers<P, R2, W> {
        Handlers { reader: self.reader, rule, listener: self.listener }
    }

    pub(crate) fn with_listener<W2>(self, listener: W2) -> Handlers<P, R, W2> {
        Handlers { reader: self.reader, rule: self.rule, listener }
    }
}

impl<P, R, W> fmt::Debug for Handlers<P, R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handlers").finish_non_exhaustive()
    }
}

impl<Out, P: ResultReader<Out>, R, W> ResultReader<Out> for Handlers<P, R, W> {
    type Value = P::Value;
    type Error = P::Error;
    type Mark = P::Mark;

    #[inline]
    fn read(&mut self, out: Out) -> ReadResult<P::Value, P::Error, P::Mark> {
        self.reader.read(out)
    }
}

/// Handles the results of an operation.
pub trait Handle<Out>: ResultReader<Out> {
    /// The listener of the call.
    type Listener: Listen;

    /// Returns the outcome of an attempt that ended with this error, by its mark or else by the rule.
    fn outcome(&self, error: &Self::Error, mark: Self::Mark, rules: Option<&RuleSet>) -> Outcome;

    /// Returns the listener.
    fn listener(&self) -> &Self::Listener;
}

impl<Out, P: ResultReader<Out>, R: Rule<P::Error>, W: Listen> Handle<Out> for Handlers<P, R, W> {
    type Listener = W;

    #[inline]
    fn outcome(&self, error: &P::Error, mark: P::Mark, rules: Option<&RuleSet>) -> Outcome {
        mark.into().unwrap_or_else(|| self.rule.outcome(error, rules))
    }

    #[inline]
    fn listener(&self) -> &W {
        &self.listener
    }
}
