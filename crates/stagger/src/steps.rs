//! The builder steps shared by the async and the blocking driver.

use crate::rule::{BuiltIn, Plain};
use crate::setup::Setup;

/// The parts that a call is built from.
#[derive(Debug)]
pub(crate) struct Parts<'p, F, P, R, T, X, N> {
    pub(crate) policy: &'p crate::Policy,
    pub(crate) operation: F,
    pub(crate) reader: P,
    pub(crate) rule: R,
    pub(crate) timer: T,
    pub(crate) setup: X,
    pub(crate) cancel: N,
}

impl<'p, F, T, N> Parts<'p, F, Plain, BuiltIn, T, Setup, N> {
    /// Creates the parts of a call without rules, guards, limits or listeners.
    #[inline]
    pub(crate) fn plain(policy: &'p crate::Policy, timer: T, operation: F, cancel: N) -> Self {
        Self { policy, operation, reader: Plain, rule: BuiltIn, timer, setup: Setup::default(), cancel }
    }
}

impl<'p, F, P, R, T, X, N> Parts<'p, F, P, R, T, X, N> {
    pub(crate) fn with_reader<P2>(self, wrap: impl FnOnce(P) -> P2) -> Parts<'p, F, P2, R, T, X, N> {
        let Self { policy, operation, reader, rule, timer, setup, cancel } = self;
        Parts { policy, operation, reader: wrap(reader), rule, timer, setup, cancel }
    }

    pub(crate) fn with_rule<R2>(self, rule: R2) -> Parts<'p, F, P, R2, T, X, N> {
        let Self { policy, operation, reader, timer, setup, cancel, .. } = self;
        Parts { policy, operation, reader, rule, timer, setup, cancel }
    }

    pub(crate) fn with_timer<T2>(self, timer: T2) -> Parts<'p, F, P, R, T2, X, N> {
        let Self { policy, operation, reader, rule, setup, cancel, .. } = self;
        Parts { policy, operation, reader, rule, timer, setup, cancel }
    }

    pub(crate) fn with_setup<X2>(self, change: impl FnOnce(X) -> X2) -> Parts<'p, F, P, R, T, X2, N> {
        let Self { policy, operation, reader, rule, timer, setup, cancel } = self;
        Parts { policy, operation, reader, rule, timer, setup: change(setup), cancel }
    }

    pub(crate) fn with_cancel<N2>(self, cancel: N2) -> Parts<'p, F, P, R, T, X, N2> {
        let Self { policy, operation, reader, rule, timer, setup, .. } = self;
        Parts { policy, operation, reader, rule, timer, setup, cancel }
    }
}

/// Implements the builder of `$Call`. `O` is what the operation returns; `$raw` is that future's output, or `O` itself
/// in blocking code.
macro_rules! steps {
    ($Call:ident, $Timer:ident, $raw:ty, where { $($bound:tt)* }) => {
        /// Error classification, timer, seed, listener and output.
        impl<'p, F, O, P, R, T, S, G, L, Y, M, N> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
        where
            $($bound)*
            P: ResultReader<$raw>,
            T: $Timer,
            Setup<S, G, L, Y, M>: CallOptions,
        {
            /// Retries only errors for which `is_transient` returns true; all others are permanent.
            pub fn when<W>(self, is_transient: W) -> $Call<'p, F, O, P, When<W>, T, Setup<S, G, L, Y, M>, N>
            where
                W: Fn(&P::Error) -> bool,
            {
                $Call::from_parts(self.into_parts().with_rule(When(is_transient)))
            }

            /// Sets the rule that classifies errors, returning the full [`Outcome`](crate::Outcome): the failure kind
            /// and the server's hint.
            ///
            /// `Outcome::Success` is treated as permanent, because the operation did return an error.
            pub fn classify<W>(self, outcome: W) -> $Call<'p, F, O, P, Classify<W>, T, Setup<S, G, L, Y, M>, N>
            where
                W: Fn(&P::Error) -> Outcome,
            {
                $Call::from_parts(self.into_parts().with_rule(Classify(outcome)))
            }

            /// Checks each successful value with `check`, which may convert it, or turn it into an error that is then
            /// classified like any other.
            pub fn validate<U, W>(self, check: W) -> $Call<'p, F, O, Validated<P, W>, R, T, Setup<S, G, L, Y, M>, N>
            where
                W: FnMut(P::Value) -> Result<U, P::Error>,
            {
                $Call::from_parts(self.into_parts().with_reader(|before| Validated { before, check }))
            }

            /// Sets the timer to sleep on, whose clock is also read.
            pub fn timer<T2: $Timer>(self, timer: T2) -> $Call<'p, F, O, P, R, T2, Setup<S, G, L, Y, M>, N> {
                $Call::from_parts(self.into_parts().with_timer(timer))
            }

            /// Sets the seed, or the source of seeds, that delays are drawn from. Default: the system's entropy.
            ///
            /// A fixed seed makes delays reproducible, for tests and reports. Calls that share a seed wait in lockstep.
            pub fn seed<Y2: Entropy>(self, entropy: Y2) -> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y2, M>, N>
            where
                Setup<S, G, L, Y2, M>: CallOptions,
            {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.with_entropy(entropy)))
            }

            /// Sets the listener that is called with every decision: before each sleep, and at the end. Replaces an
            /// earlier one. With a listener, the clock is read at the start of the call.
            pub fn on_event<W>(self, listen: W) -> $Call<'p, F, O, P, R, T, Setup<OnEvent<W>, G, L, Y, M>, N>
            where
                W: Fn(&Event<'_>),
                Setup<OnEvent<W>, G, L, Y, M>: CallOptions,
            {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.with_sink(OnEvent(listen))))
            }

            /// Sets the output to [`Error<E>`](crate::Error) on failure: the last error, the reason to stop, the number
            /// of attempts and the elapsed time.
            pub fn detailed(self) -> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y, Detailed>, N>
            where
                Setup<S, G, L, Y, Detailed>: CallOptions,
            {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.with_mode(Detailed)))
            }

            /// Sets the output to a [`Report`](crate::Report), which has the number of attempts and the elapsed time of
            /// a success, too.
            pub fn with_report(self) -> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y, Reported>, N>
            where
                Setup<S, G, L, Y, Reported>: CallOptions,
            {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.with_mode(Reported)))
            }

            /// Sets the output to the operation's own error type, which must implement
            /// `From<`[`Rejected`](crate::Rejected)`>` to represent a rejected call.
            pub fn with_inner_error(self) -> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y, InnerError>, N>
            where
                Setup<S, G, L, Y, InnerError>: CallOptions,
            {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.with_mode(InnerError)))
            }

            /// Sets the budget and breaker of the call. A breaker can reject the call, so the output becomes
            /// [`Error<E>`](crate::Error); use `.with_inner_error()` or `.with_report()` afterwards to change it.
            pub fn guards<'g>(
                self,
                guards: Guards<'g>,
            ) -> $Call<'p, F, O, P, R, T, Setup<S, Guarded<'g, T>, L, Y, Detailed>, N>
            where
                T: Clone,
                Setup<S, Guarded<'g, T>, L, Y, Detailed>: CallOptions,
            {
                let parts = self.into_parts();
                let guarded = Guarded { guards, nested: crate::NestedRetries::Disable, clock: parts.timer.clone() };
                $Call::from_parts(parts.with_setup(|setup| setup.with_guards(guarded).with_mode(Detailed)))
            }
        }

        /// Per-call guard settings.
        impl<'p, 'g, F, O, P, R, T, S, C, L, Y, M, N> $Call<'p, F, O, P, R, T, Setup<S, Guarded<'g, C>, L, Y, M>, N>
        where
            $($bound)*
            P: ResultReader<$raw>,
            T: $Timer,
            Setup<S, Guarded<'g, C>, L, Y, M>: CallOptions,
        {
            /// Sets the budget for this call only, replacing the shared one.
            pub fn budget(self, budget: &'g dyn Budget) -> Self {
                self.guarded(|guarded| guarded.guards.budget = Some(budget))
            }

            /// Sets what the call does inside an attempt of another call. Default: the setting of its
            /// [`Retrier`](crate::Retrier), or [`NestedRetries::Disable`](crate::NestedRetries::Disable).
            pub fn nested(self, nested: crate::NestedRetries) -> Self {
                self.guarded(|guarded| guarded.nested = nested)
            }

            fn guarded(self, change: impl FnOnce(&mut Guarded<'g, C>)) -> Self {
                $Call::from_parts(self.into_parts().with_setup(|mut setup| {
                    change(&mut setup.guards);
                    setup
                }))
            }
        }

        /// Time limits. They can end the call without an operation error, so the output becomes
        /// [`Error<E>`](crate::Error); use `.with_inner_error()` or `.with_report()` afterwards to change it.
        impl<'p, F, O, P, R, T, S, G, L, Y, M, N> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
        where
            $($bound)*
            P: ResultReader<$raw>,
            T: $Timer,
            L: Into<Limits>,
            Setup<S, G, L, Y, M>: CallOptions,
            Setup<S, G, Limits, Y, Detailed>: CallOptions,
        {
            /// Sets the timeout of each attempt, counted from the start of that attempt, after the sleep. Default:
            /// none.
            pub fn timeout(self, length: Duration) -> $Call<'p, F, O, P, R, T, Setup<S, G, Limits, Y, Detailed>, N> {
                self.limited(|limits| limits.timeout = Some(length))
            }

            /// Sets whether the timeout also applies to the last attempt. Default:
            /// [`LastAttempt::Timed`](crate::LastAttempt::Timed).
            pub fn last_attempt(self, last: LastAttempt) -> $Call<'p, F, O, P, R, T, Setup<S, G, Limits, Y, Detailed>, N> {
                self.limited(|limits| limits.last = last)
            }

            /// Sets the deadline of the call, as an instant of the timer's clock. No retry starts at or after the
            /// deadline, and an attempt in progress is dropped (async) or receives its remaining time (blocking). Default:
            /// none.
            pub fn deadline(self, deadline: Instant) -> $Call<'p, F, O, P, R, T, Setup<S, G, Limits, Y, Detailed>, N> {
                self.limited(|limits| limits.deadline = Some(deadline))
            }

            /// Sets the deadline to `length` from now.
            pub fn within(self, length: Duration) -> $Call<'p, F, O, P, R, T, Setup<S, G, Limits, Y, Detailed>, N> {
                let deadline = self.call.clock.now().saturating_add(length);
                self.deadline(deadline)
            }

            fn limited(
                self,
                change: impl FnOnce(&mut Limits),
            ) -> $Call<'p, F, O, P, R, T, Setup<S, G, Limits, Y, Detailed>, N> {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.limited(change)))
            }
        }
    };
}

pub(crate) use steps;
