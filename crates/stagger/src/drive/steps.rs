//! The builder steps shared by the async and the blocking driver.

use core::fmt;

use stagger_core::Outcome;

use crate::classify::rule::{BuiltIn, Plain, ReadResult, ResultReader, Rule, RuleSet};
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

/// Implements the builder of `$Call`. `$Out` is what one attempt returns.
macro_rules! steps {
    ($Call:ident, [$($pre:ident),*], [$($post:ident),*], $Timer:ident, $Out:ty, where { $($bound:tt)* }) => {
        /// Error classification, timer, seed and output.
        impl<$($pre,)* T, X, P, R, W, M $(, $post)*> $Call<$($pre,)* T, X, Handlers<P, R, W>, M $(, $post)*>
        where
            $($bound)*
            T: $Timer + Clone,
            X: Options,
            P: ResultReader<$Out>,
            M: OutputMode,
        {
            /// Retries only errors for which `is_transient` returns true; all others are permanent.
            pub fn when<V>(self, is_transient: V) -> $Call<$($pre,)* T, X, Handlers<P, When<V>, W>, M $(, $post)*>
            where
                V: Fn(&P::Error) -> bool,
            {
                self.with_handlers(|handlers| handlers.with_rule(When(is_transient)))
            }

            /// Sets the rule that classifies errors, returning the full [`Outcome`](crate::Outcome): the failure kind
            /// and the server's hint. It replaces the rules of the retrier, if there is one.
            ///
            /// `Outcome::Success` is treated as permanent, because the operation did return an error.
            pub fn classify<V>(self, outcome: V) -> $Call<$($pre,)* T, X, Handlers<P, Classify<V>, W>, M $(, $post)*>
            where
                V: Fn(&P::Error) -> Outcome,
            {
                self.with_handlers(|handlers| handlers.with_rule(Classify(outcome)))
            }

            /// Checks each successful value with `check`, which may convert it, or turn it into an error that is then
            /// classified like any other.
            pub fn validate<U, V>(
                self,
                check: V,
            ) -> $Call<$($pre,)* T, X, Handlers<Validated<P, V>, R, W>, M $(, $post)*>
            where
                V: FnMut(P::Value) -> Result<U, P::Error>,
            {
                self.with_handlers(|handlers| handlers.with_reader(|before| Validated { before, check }))
            }

            /// Sets the timer to sleep on, whose clock is also read.
            pub fn timer<T2: $Timer + Clone>(
                self,
                timer: T2,
            ) -> $Call<$($pre,)* T2, X, Handlers<P, R, W>, M $(, $post)*> {
                self.rebuild(|_, options, handlers| (timer, options, handlers))
            }

            /// Sets the seed that delays are drawn from. Default: the system's entropy.
            ///
            /// A fixed seed makes delays reproducible, for tests and reports. Calls that share a seed wait in lockstep.
            pub fn seed(self, seed: Seed) -> Self {
                self.with_seed(seed)
            }

            /// Sets the output to the operation's own error type, which must implement
            /// `From<`[`Rejected`](crate::Rejected)`>` to represent a rejected call.
            pub fn with_inner_error(self) -> $Call<$($pre,)* T, X, Handlers<P, R, W>, InnerError $(, $post)*>
            where
                InnerError: Finish<P::Value, P::Error>,
            {
                self.rebuild(|timer, options, handlers| (timer, options, handlers))
            }

            fn with_handlers<P2, R2, W2>(
                self,
                change: impl FnOnce(Handlers<P, R, W>) -> Handlers<P2, R2, W2>,
            ) -> $Call<$($pre,)* T, X, Handlers<P2, R2, W2>, M $(, $post)*>
            where
                P2: ResultReader<$Out>,
            {
                self.rebuild(|timer, options, handlers| (timer, options, change(handlers)))
            }
        }

        /// Guards, time limits, listener, and the outputs that need the elapsed time.
        impl<'p, $($pre,)* T, X, P, R, W, M $(, $post)*> $Call<$($pre,)* T, X, Handlers<P, R, W>, M $(, $post)*>
        where
            $($bound)*
            T: $Timer + Clone,
            X: Configure<'p>,
            P: ResultReader<$Out>,
            M: OutputMode,
        {
            /// Sets the listener that is called with every decision of this call: before each sleep, and at the end.
            /// Replaces an earlier one; the listeners of a retrier are called as well. With a listener, the clock is
            /// read at the start of the call.
            pub fn on_event<V>(
                self,
                listen: V,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, OnEvent<V>>, M $(, $post)*>
            where
                V: Fn(&Event<'_>),
            {
                self.with_handlers(|handlers| handlers.with_listener(OnEvent(listen)))
                    .configured(|options| options.is_timed = true)
            }

            /// Adds a guard behind those of the retrier: a budget, a breaker, or one of your own. It can reject the
            /// call before its first attempt, so the output becomes [`Error<E>`](crate::Error) unless it was set.
            pub fn guard(
                self,
                guard: &'p dyn Guard,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M::Rejectable $(, $post)*> {
                self.configured(|options| {
                    options.is_timed = true;
                    options.guards.push(guard);
                })
            }

            /// Sets what the call does inside an attempt of another call. Default: the setting of its
            /// [`Retrier`](crate::Retrier), or [`NestedRetries::Disable`](crate::NestedRetries::Disable).
            pub fn nested(
                self,
                nested: NestedRetries,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M $(, $post)*> {
                self.configured(|options| options.guards.nested = nested)
            }

            /// Sets the timeout of each attempt, counted from the start of that attempt, after the sleep. Default:
            /// none. It can end the call without an error of the operation, so the output becomes
            /// [`Error<E>`](crate::Error) unless it was set.
            pub fn timeout(
                self,
                length: Duration,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M::Rejectable $(, $post)*> {
                self.limited(|limits| limits.timeout = Some(length))
            }

            /// Sets whether the timeout also applies to the last attempt. Default:
            /// [`LastAttempt::Timed`](crate::LastAttempt::Timed).
            pub fn last_attempt(
                self,
                last: LastAttempt,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M::Rejectable $(, $post)*> {
                self.limited(|limits| limits.last = last)
            }

            /// Sets the deadline of the call: an instant of the timer's clock, of std's or of tokio's, see
            /// [`Deadline`](crate::time::Deadline). No attempt starts at or after the deadline, not even the first, and
            /// an attempt in progress is dropped (async) or receives its remaining time (blocking). Default: none. The
            /// output becomes [`Error<E>`](crate::Error) unless it was set.
            pub fn deadline(
                self,
                deadline: impl Deadline,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M::Rejectable $(, $post)*> {
                let deadline = deadline.on_clock(self.clock());
                self.limited(|limits| limits.deadline = Some(deadline))
            }

            /// Sets the deadline to `length` from now.
            pub fn within(
                self,
                length: Duration,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M::Rejectable $(, $post)*> {
                let deadline = self.clock().now().saturating_add(length);
                self.deadline(deadline)
            }

            /// Sets the output to [`Error<E>`](crate::Error) on failure: the last error, the reason to stop, the number
            /// of attempts and the elapsed time.
            pub fn detailed(
                self,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, Detailed $(, $post)*> {
                self.configured(|options| options.is_timed = true)
            }

            /// Sets the output to a [`Report`](crate::Report), which has the number of attempts and the elapsed time of
            /// a success, too.
            pub fn with_report(
                self,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, Reported $(, $post)*> {
                self.configured(|options| options.is_timed = true)
            }

            fn configured<M2: OutputMode>(
                self,
                change: impl FnOnce(&mut Configured<'p>),
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M2 $(, $post)*> {
                self.rebuild(|timer, options, handlers| {
                    let mut options = options.configure();
                    change(&mut options);
                    (timer, options, handlers)
                })
            }

            fn limited(
                self,
                change: impl FnOnce(&mut Limits),
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M::Rejectable $(, $post)*> {
                self.configured(|options| {
                    options.is_timed = true;
                    change(&mut options.limits);
                })
            }
        }
    };
}

pub(crate) use steps;
