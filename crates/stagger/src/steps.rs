//! The steps of the two builders, async and blocking, written once.

use crate::rule::{BuiltIn, Plain};
use crate::setup::Setup;

/// What a call is made of.
#[derive(Debug)]
pub(crate) struct Parts<'p, F, P, R, T, X, N> {
    pub(crate) policy: &'p crate::Policy,
    pub(crate) operation: F,
    pub(crate) reading: P,
    pub(crate) rule: R,
    pub(crate) timer: T,
    pub(crate) setup: X,
    pub(crate) cancel: N,
}

impl<'p, F, T, N> Parts<'p, F, Plain, BuiltIn, T, Setup, N> {
    /// A call that brings nothing along.
    #[inline]
    pub(crate) fn plain(policy: &'p crate::Policy, timer: T, operation: F, cancel: N) -> Self {
        Self { policy, operation, reading: Plain, rule: BuiltIn, timer, setup: Setup::default(), cancel }
    }
}

impl<'p, F, P, R, T, X, N> Parts<'p, F, P, R, T, X, N> {
    pub(crate) fn with_reading<P2>(self, wrap: impl FnOnce(P) -> P2) -> Parts<'p, F, P2, R, T, X, N> {
        let Self { policy, operation, reading, rule, timer, setup, cancel } = self;
        Parts { policy, operation, reading: wrap(reading), rule, timer, setup, cancel }
    }

    pub(crate) fn with_rule<R2>(self, rule: R2) -> Parts<'p, F, P, R2, T, X, N> {
        let Self { policy, operation, reading, timer, setup, cancel, .. } = self;
        Parts { policy, operation, reading, rule, timer, setup, cancel }
    }

    pub(crate) fn with_timer<T2>(self, timer: T2) -> Parts<'p, F, P, R, T2, X, N> {
        let Self { policy, operation, reading, rule, setup, cancel, .. } = self;
        Parts { policy, operation, reading, rule, timer, setup, cancel }
    }

    pub(crate) fn with_setup<X2>(self, change: impl FnOnce(X) -> X2) -> Parts<'p, F, P, R, T, X2, N> {
        let Self { policy, operation, reading, rule, timer, setup, cancel } = self;
        Parts { policy, operation, reading, rule, timer, setup: change(setup), cancel }
    }

    pub(crate) fn with_cancel<N2>(self, cancel: N2) -> Parts<'p, F, P, R, T, X, N2> {
        let Self { policy, operation, reading, rule, timer, setup, .. } = self;
        Parts { policy, operation, reading, rule, timer, setup, cancel }
    }
}

/// `$Call`'s builder. `O` is what the operation returns, `$raw` what comes of it in the end.
macro_rules! steps {
    ($Call:ident, $Timer:ident, $raw:ty, where { $($bound:tt)* }) => {
        /// Which errors are worth another attempt.
        impl<'p, F, O, P, R, T, S, G, L, Y, M, N> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
        where
            $($bound)*
            P: Reading<$raw>,
            T: $Timer,
            Setup<S, G, L, Y, M>: Extras,
        {
            /// Another attempt only for errors of which `is_transient` is true; every other is permanent.
            pub fn when<W>(self, is_transient: W) -> $Call<'p, F, O, P, When<W>, T, Setup<S, G, L, Y, M>, N>
            where
                W: Fn(&P::Error) -> bool,
            {
                $Call::from_parts(self.into_parts().with_rule(When(is_transient)))
            }

            /// What an error means, in full: its kind, and what the server asked for.
            ///
            /// An outcome of success is taken for permanent: there is an error after all.
            pub fn classify<W>(self, outcome: W) -> $Call<'p, F, O, P, Classify<W>, T, Setup<S, G, L, Y, M>, N>
            where
                W: Fn(&P::Error) -> Outcome,
            {
                $Call::from_parts(self.into_parts().with_rule(Classify(outcome)))
            }

            /// A look at the value: it may turn out to be a failure, or become another value.
            pub fn validate<U, W>(self, check: W) -> $Call<'p, F, O, Validated<P, W>, R, T, Setup<S, G, L, Y, M>, N>
            where
                W: FnMut(P::Value) -> Result<U, P::Error>,
            {
                $Call::from_parts(self.into_parts().with_reading(|before| Validated { before, check }))
            }

            /// Sleeps on this timer, and reads its clock.
            pub fn timer<T2: $Timer>(self, timer: T2) -> $Call<'p, F, O, P, R, T2, Setup<S, G, L, Y, M>, N> {
                $Call::from_parts(self.into_parts().with_timer(timer))
            }

            /// Draws delays from this seed, which makes them repeatable, or from another source of seeds.
            ///
            /// Calls that share a seed wait in lockstep: it is for tests and reports.
            pub fn seed<Y2: Entropy>(self, entropy: Y2) -> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y2, M>, N>
            where
                Setup<S, G, L, Y2, M>: Extras,
            {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.with_entropy(entropy)))
            }

            /// Tells this function what is decided, before each sleep and at the end. The clock is read for it.
            pub fn on_event<W>(self, listen: W) -> $Call<'p, F, O, P, R, T, Setup<OnEvent<W>, G, L, Y, M>, N>
            where
                W: Fn(&Event<'_>),
                Setup<OnEvent<W>, G, L, Y, M>: Extras,
            {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.with_sink(OnEvent(listen))))
            }

            /// Gives [`Error<E>`](crate::Error): the last error, why there was no further attempt, how many there were,
            /// how long it took.
            pub fn detailed(self) -> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y, Explained>, N>
            where
                Setup<S, G, L, Y, Explained>: Extras,
            {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.with_mode(Explained)))
            }

            /// Gives a [`Report`](crate::Report), which says the same for a success.
            pub fn with_report(self) -> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y, Reported>, N>
            where
                Setup<S, G, L, Y, Reported>: Extras,
            {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.with_mode(Reported)))
            }

            /// Gives the operation's own error, which can also say that the call was refused: it has
            /// `From<`[`Rejected`](crate::Rejected)`>`.
            pub fn with_inner_error(self) -> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y, Own>, N>
            where
                Setup<S, G, L, Y, Own>: Extras,
            {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.with_mode(Own)))
            }

            /// Asks these guards. A breaker can refuse the call, so it gives [`Error<E>`](crate::Error); `.into_inner()` or
            /// `.with_report()` after it change that.
            pub fn guards<'g>(
                self,
                guards: Guards<'g>,
            ) -> $Call<'p, F, O, P, R, T, Setup<S, Guarded<'g, T>, L, Y, Explained>, N>
            where
                T: Clone,
                Setup<S, Guarded<'g, T>, L, Y, Explained>: Extras,
            {
                let parts = self.into_parts();
                let guarded = Guarded { guards, nested: crate::NestedRetries::Disable, clock: parts.timer.clone() };
                $Call::from_parts(parts.with_setup(|setup| setup.with_guards(guarded).with_mode(Explained)))
            }
        }

        /// More about the guards.
        impl<'p, 'g, F, O, P, R, T, S, C, L, Y, M, N> $Call<'p, F, O, P, R, T, Setup<S, Guarded<'g, C>, L, Y, M>, N>
        where
            $($bound)*
            P: Reading<$raw>,
            T: $Timer,
            Setup<S, Guarded<'g, C>, L, Y, M>: Extras,
        {
            /// This budget pays for this call, in place of the one that the other calls have.
            pub fn budget(self, budget: &'g dyn Budget) -> Self {
                self.guarded(|guarded| guarded.guards.budget = Some(budget))
            }

            /// What the call does inside an attempt of another. Default: what its [`Retrier`](crate::Retrier) says, else
            /// it stands down.
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

        /// Marks from inside the operation.
        impl<'p, F, O, R, T, S, G, L, Y, M, N> $Call<'p, F, O, Plain, R, T, Setup<S, G, L, Y, M>, N>
        where
            $($bound)*
            Plain: Reading<$raw>,
            T: $Timer,
            Setup<S, G, L, Y, M>: Extras,
        {
            /// Reads the marks of [`Marked`](crate::Marked), and takes them off: the caller gets the original error.
            pub fn with_marks(self) -> $Call<'p, F, O, WithMarks, R, T, Setup<S, G, L, Y, M>, N>
            where
                WithMarks: Reading<$raw>,
            {
                $Call::from_parts(self.into_parts().with_reading(|_| WithMarks))
            }
        }

        /// Limits of time, which can end a call without an error of the operation's, so it gives
        /// [`Error<E>`](crate::Error); `.into_inner()` or `.with_report()` after them change that.
        impl<'p, F, O, P, R, T, S, G, L, Y, M, N> $Call<'p, F, O, P, R, T, Setup<S, G, L, Y, M>, N>
        where
            $($bound)*
            P: Reading<$raw>,
            T: $Timer,
            L: Into<Limits>,
            Setup<S, G, L, Y, M>: Extras,
            Setup<S, G, Limits, Y, Explained>: Extras,
        {
            /// How long one attempt may take. Counted from its own beginning, after the sleep.
            pub fn timeout(self, length: Duration) -> $Call<'p, F, O, P, R, T, Setup<S, G, Limits, Y, Explained>, N> {
                self.limited(|limits| limits.timeout = Some(length))
            }

            /// Whether the timeout holds for the last attempt too. Default: it does.
            pub fn last_attempt(self, last: LastAttempt) -> $Call<'p, F, O, P, R, T, Setup<S, G, Limits, Y, Explained>, N> {
                self.limited(|limits| limits.last = last)
            }

            /// When the whole call ends, on the timer's clock: no retry starts then or later, and no attempt goes on.
            pub fn deadline(self, deadline: Instant) -> $Call<'p, F, O, P, R, T, Setup<S, G, Limits, Y, Explained>, N> {
                self.limited(|limits| limits.deadline = Some(deadline))
            }

            /// How long the whole call may take from now on: a deadline.
            pub fn within(self, length: Duration) -> $Call<'p, F, O, P, R, T, Setup<S, G, Limits, Y, Explained>, N> {
                let deadline = self.call.clock.now().saturating_add(length);
                self.deadline(deadline)
            }

            fn limited(
                self,
                change: impl FnOnce(&mut Limits),
            ) -> $Call<'p, F, O, P, R, T, Setup<S, G, Limits, Y, Explained>, N> {
                $Call::from_parts(self.into_parts().with_setup(|setup| setup.limited(change)))
            }
        }
    };
}

pub(crate) use steps;
