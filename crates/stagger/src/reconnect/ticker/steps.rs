//! The interface shared by the async and the blocking ticker.

/// Implements for `Ticker` everything but ticking and cancellation.
macro_rules! steps {
    ($Timer:ident $(, $N:ident)?) => {
        impl<T: $Timer> Ticker<Scheduled, T> {
            /// Creates a ticker that follows a policy, or the policy of a [`Retrier`], on this timer. The retrier's
            /// listeners receive every wait, under its name. Its guards do not apply: a tick is not an attempt.
            #[must_use]
            pub fn with_timer(timer: T, retrier: impl Into<Retrier>) -> Self {
                Self::from_times(Scheduled::new(retrier.into()), timer)
            }
        }

        impl<T: $Timer $(, $N)?> Ticker<Periodic, T $(, $N)?> {
            /// Sets the time within which the first tick comes, not counting its jitter. Default: one period. Call it
            /// before the first tick.
            #[must_use]
            pub fn spread(mut self, spread: Duration) -> Self {
                self.state.times.spread = spread;
                self
            }
        }

        impl<S: Times, T: $Timer $(, $N)?> Ticker<S, T $(, $N)?> {
            /// Sets the seed that the ticks are drawn from; with a policy, its delays equal those of
            /// [`Policy::delays`](crate::Policy::delays). Call it before the first tick.
            ///
            /// Tickers that share a seed tick in lockstep: use it for tests and reports.
            #[must_use]
            pub fn seed(mut self, seed: Seed) -> Self {
                self.state.times.set_seed(seed);
                self
            }

            /// Restarts the schedule, as if the latest tick had been the first. The next tick comes after the first
            /// delay, counted from its request; for an interval, one period from now. Limits on ticks and time restart,
            /// too. A ticker that has ended stays ended.
            pub fn reset(&mut self) {
                self.state.restart(&self.timer);
            }

            /// Returns the number of ticks yielded.
            #[must_use]
            pub const fn ticks(&self) -> u64 {
                self.state.yielded()
            }
        }

        impl<S: fmt::Debug, T: $Timer $(, $N)?> fmt::Debug for Ticker<S, T $(, $N)?> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Ticker").field("state", &self.state).finish_non_exhaustive()
            }
        }
    };
}

pub(super) use steps;
