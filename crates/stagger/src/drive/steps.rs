//! The builder steps shared by the async and the blocking driver.

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

            /// Sets the budget that every retry must acquire a permit from, in place of the retrier's. Default: none.
            pub fn budget(
                self,
                budget: &'p dyn Budget,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M $(, $post)*> {
                self.configured(|options| options.guards_mut().budget = Some(budget))
            }

            /// Sets the circuit breaker that must admit every attempt, in place of the retrier's. Default: none. It can
            /// reject the call, so the output becomes [`Error<E>`](crate::Error) unless it was set.
            pub fn breaker(
                self,
                breaker: &'p dyn Breaker,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M::Rejectable $(, $post)*> {
                self.configured(|options| {
                    options.is_timed = true;
                    options.guards_mut().breaker = Some(breaker);
                })
            }

            /// Sets both guards of the call, in place of the retrier's: for a driver that may or may not have them. Prefer
            /// [`budget`](Self::budget) and [`breaker`](Self::breaker). Whether the call retries inside an attempt of
            /// another call is set by [`nested`](Self::nested) alone.
            pub fn guards(
                self,
                guards: Guards<'p>,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M::Rejectable $(, $post)*> {
                self.configured(|options| {
                    options.is_timed = true;
                    let before = options.guards_mut();
                    *before = guards.nested(before.nested);
                })
            }

            /// Sets what the call does inside an attempt of another call. Default: the setting of its
            /// [`Retrier`](crate::Retrier), or [`NestedRetries::Disable`](crate::NestedRetries::Disable).
            pub fn nested(
                self,
                nested: NestedRetries,
            ) -> $Call<$($pre,)* T, Configured<'p>, Handlers<P, R, W>, M $(, $post)*> {
                self.configured(|options| options.guards_mut().nested = nested)
            }

            /// Sets the timeout of each attempt, counted from the start of that attempt, after the sleep. Default: none.
            /// It can end the call without an error of the operation, so the output becomes
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
            /// an attempt in progress is dropped (async) or receives its remaining time (blocking). Default: none. The output becomes [`Error<E>`](crate::Error) unless it was set.
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
