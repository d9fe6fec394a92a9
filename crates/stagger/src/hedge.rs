//! Hedging: a second copy of a slow attempt, to cut tail latency.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;
use stagger_core::guard::Permits;
#[doc(inline)]
pub use stagger_core::hedge::{Hedge, HedgeDelay, HedgeState, Latencies};
use stagger_core::{DelaySource, Guard, Instant, NestedRetries, Outcome, StopReason};

use crate::call::permits::{CallGuards, GuardSource as _, HeldPermits, PermitStage};
use crate::call::scope;
use crate::classify::rule::{BuiltIn, Classify, Rule, When};
use crate::retrier::event::{Action, Event, EventError};
use crate::retrier::handle::Retrier;
use crate::retrier::shared::RetrierState;
use crate::time::Sleep;

/// Runs an async operation, and starts a second copy if the first is slow. The first success wins, and the others are
/// cancelled.
///
/// - A copy that fails never fails the call. If all fail, the error of the first attempt is returned.
/// - If the first attempt fails, the next copy starts immediately, unless the failure is permanent, which ends the
///   call.
/// - If there are [guards](Hedging::guard), such as a budget, each copy asks them as a retry does. One that is
///   rejected, or would have to wait, is not started, and nothing else changes. A [`retrier`](Hedging::retrier) adds
///   its guards, rules and listeners.
/// - Use it only for operations that may run concurrently: each copy is a separate call to the server.
/// - Dropping the future drops every copy. Cancel-safe.
///
/// Hedging does not retry. Wrap it in a retry, and each attempt is hedged.
///
/// ```
/// use std::time::Duration;
/// use stagger::hedge::Hedge;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// const HEDGE: Hedge = Hedge::after(Duration::from_millis(100));
///
/// let calls = std::cell::Cell::new(0);
/// let report = stagger::hedge::hedge(&HEDGE, || {
///     calls.set(calls.get() + 1);
///     let slow = calls.get() == 1;
///     async move {
///         tokio::time::sleep(Duration::from_millis(if slow { 5_000 } else { 20 })).await;
///         Ok::<_, ()>("answer")
///     }
/// })
/// .with_report()
/// .await;
/// assert_eq!((report.result, report.winner, report.launched), (Ok("answer"), Some(1), 2));
/// # });
/// ```
#[cfg(feature = "tokio")]
pub fn hedge<F, O, V, E>(hedge: &Hedge, operation: F) -> Hedging<'_, F, O, E, BuiltIn, crate::time::Tokio, Result<V, E>>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
{
    hedge_with_timer(hedge, crate::time::Tokio, operation)
}

/// Runs a hedged operation on another timer; see [`hedge`](fn@crate::hedge::hedge).
pub fn hedge_with_timer<F, O, V, E, T>(
    hedge: &Hedge,
    timer: T,
    operation: F,
) -> Hedging<'_, F, O, E, BuiltIn, T, Result<V, E>>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    T: Sleep + Clone,
{
    Hedging::new(
        HedgeOptions { hedge, guards: CallGuards::NONE, retrier: None, latencies: None },
        operation,
        BuiltIn,
        timer,
    )
}

pin_project! {
    /// The future returned by [`hedge`](fn@crate::hedge), and the builder that configures it.
    ///
    /// The type parameters track the configured options; they are inferred. `Out` is the output.
    #[must_use = "futures do nothing unless polled"]
    pub struct Hedging<'h, F, O, E, R, T: Sleep, Out> {
        options: HedgeOptions<'h>,
        operation: F,
        rule: R,
        timer: T,
        state: Option<HedgeState>,
        #[pin]
        first: Option<O>,
        first_started: Instant,
        first_permits: HeldPermits<CallGuards<'h>, T>,
        copies: Vec<HedgedCopy<'h, O, T>>,
        sleeping: Option<T::Sleeping>,
        armed_for: Option<Instant>,
        // The first attempt's error; until there is one, the error of a copy.
        error: Option<(u32, E)>,
        // Why no further copy is started, if a guard rejected one.
        rejected: Option<StopReason>,
        output: PhantomData<fn() -> Out>,
    }
}

/// What the call takes from its caller.
#[derive(Clone, Copy)]
struct HedgeOptions<'h> {
    hedge: &'h Hedge,
    guards: CallGuards<'h>,
    retrier: Option<&'h RetrierState>,
    latencies: Option<&'h Latencies>,
}

/// A copy in flight.
struct HedgedCopy<'h, O, T: Sleep> {
    attempt: Pin<Box<O>>,
    number: u32,
    started: Instant,
    permits: HeldPermits<CallGuards<'h>, T>,
}

/// The result of a hedged call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hedged<V, E> {
    /// The value of the winner, or the error of the first attempt.
    pub result: Result<V, E>,
    /// The attempt that won: 0 for the first, 1 for the first copy; `None` if none did.
    pub winner: Option<u32>,
    /// Number of attempts started, including the first.
    pub launched: u32,
    /// Whether a guard rejected a copy, after which no more were started.
    pub rejected: bool,
}

/// Returns the result alone.
impl<V, E> From<Hedged<V, E>> for Result<V, E> {
    fn from(hedged: Hedged<V, E>) -> Self {
        hedged.result
    }
}

impl<'h, F, O, E, R, T: Sleep, Out> Hedging<'h, F, O, E, R, T, Out> {
    const fn new(options: HedgeOptions<'h>, operation: F, rule: R, timer: T) -> Self {
        Self {
            options,
            operation,
            rule,
            timer,
            state: None,
            first: None,
            first_started: Instant::ZERO,
            first_permits: HeldPermits::EMPTY,
            copies: Vec::new(),
            sleeping: None,
            armed_for: None,
            error: None,
            rejected: None,
            output: PhantomData,
        }
    }

    /// Adds a guard behind those of the [retrier](Self::retrier) and those that were added before. It must let every
    /// copy start, at once; a budget also counts the first attempt. Default: none. A guard under an [operator
    /// control](crate::control) limits and disables copies together with retries.
    pub fn guard(mut self, guard: &'h dyn Guard) -> Self {
        self.options.guards.push(guard);
        self
    }

    /// Sets the retrier of the target. Its rules classify errors, its listeners receive every copy as a retry and the
    /// end of the call, and its guards must let every copy start. The first attempt is made without asking them, even
    /// if a breaker is open, and the policy is not used: to reject and to retry, make the hedged call inside
    /// [`Retrier::run`].
    pub fn retrier(mut self, retrier: &'h Retrier) -> Self {
        self.options.retrier = Some(retrier.shared());
        self
    }

    /// Sets the recorder of attempt latencies, which a quantile delay is computed from. Share one between the calls to
    /// a target. Default: none, so a quantile delay uses its fallback.
    pub fn latencies(mut self, latencies: &'h Latencies) -> Self {
        self.options.latencies = Some(latencies);
        self
    }

    /// Sets which errors are transient; all others are permanent. A permanent error of the first attempt ends the call.
    pub fn when<P: Fn(&E) -> bool>(self, is_transient: P) -> Hedging<'h, F, O, E, When<P>, T, Out> {
        Hedging::new(self.options, self.operation, When(is_transient), self.timer)
    }

    /// Sets the rule that classifies errors, returning the full [`Outcome`].
    pub fn classify<P: Fn(&E) -> Outcome>(self, rule: P) -> Hedging<'h, F, O, E, Classify<P>, T, Out> {
        Hedging::new(self.options, self.operation, Classify(rule), self.timer)
    }

    /// Sets the output to [`Hedged`]: the result, the winner, and the number of attempts started.
    pub fn with_report<V>(self) -> Hedging<'h, F, O, E, R, T, Hedged<V, E>>
    where
        O: Future<Output = Result<V, E>>,
    {
        Hedging::new(self.options, self.operation, self.rule, self.timer)
    }
}

impl<F, O, E, R, T: Sleep, Out> fmt::Debug for Hedging<'_, F, O, E, R, T, Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedging").field("hedge", self.options.hedge).field("state", &self.state).finish_non_exhaustive()
    }
}

impl<F, O, V, E, R, T, Out> Future for Hedging<'_, F, O, E, R, T, Out>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    E: EventError,
    R: Rule<E>,
    T: Sleep + Clone,
    Out: From<Hedged<V, E>>,
{
    type Output = Out;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Out> {
        if self.state.is_none() {
            self.as_mut().start();
        }
        // An attempt ends the call                   → ready
        // All have failed, and no copy will follow   → ready, with the error of the first
        // The next copy is due                       → launch it, and poll it at once
        // Otherwise                                  → sleep until a copy is due, or wait for the attempts alone
        loop {
            if let Some(end) = self.as_mut().poll_attempts(cx) {
                return Poll::Ready(end.into());
            }
            let this = self.as_mut().project();
            let Some(state) = this.state else { return Poll::Pending };
            let Some(due) = state.due() else {
                if this.first.is_some() || !this.copies.is_empty() {
                    return Poll::Pending;
                }
                // All attempts have failed; without an error, the call has already ended.
                let Some((_, error)) = this.error.take() else { return Poll::Pending };
                let stop = this.rejected.unwrap_or(StopReason::Attempts);
                return Poll::Ready(self.end(Err(error), None, Action::Stop(stop)).into());
            };
            let now = this.timer.now();
            if now < due {
                if *this.armed_for != Some(due) {
                    let left = due.saturating_since(now);
                    match this.sleeping {
                        Some(sleeping) => this.timer.rearm(sleeping, left),
                        None => *this.sleeping = Some(this.timer.sleep(left)),
                    }
                    *this.armed_for = Some(due);
                }
                let Some(sleeping) = this.sleeping.as_mut() else { return Poll::Pending };
                ready!(Pin::new(sleeping).poll(cx));
                // The timer may have fired early.
                *this.armed_for = None;
                continue;
            }
            self.as_mut().launch(now);
        }
    }
}

impl<F, O, V, E, R, T, Out> Hedging<'_, F, O, E, R, T, Out>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    E: EventError,
    R: Rule<E>,
    T: Sleep + Clone,
{
    /// Starts the first attempt.
    fn start(self: Pin<&mut Self>) {
        let mut this = self.project();
        let now = this.timer.now();
        *this.first_started = now;
        this.options.add_guards_of_retrier();
        // The first attempt of a call inside another one is part of that call's attempt.
        let nested = if scope::depth() > 0 { NestedRetries::ShareBudget } else { NestedRetries::Allow };
        let mut guards = this.options.guards;
        guards.nested = nested;
        let permits = guards.guards().first_of_several(|| now);
        *this.first_permits = held(permits, PermitStage::Attempting, guards, this.timer);
        this.first.set(Some((this.operation)()));
        *this.state = Some(HedgeState::new(this.options.hedge, this.options.delay(), now));
    }

    /// Starts another copy, if the guards grant it.
    fn launch(self: Pin<&mut Self>, now: Instant) {
        let this = self.project();
        let Some(state) = this.state else { return };
        let permits = match this.options.guards.guards().another_of_several(|| now) {
            Ok(permits) => permits,
            Err(stop) => {
                state.rejected();
                *this.rejected = Some(stop);
                return;
            }
        };
        // Only after the permits are stored: the listener or the operation may panic.
        let mut permits = held(permits, PermitStage::Waiting, this.options.guards, this.timer);
        let number = state.count();
        let after = now.saturating_since(*this.first_started);
        this.options.emit(number, after, Action::Retry { after, source: DelaySource::Hedge }, None);
        permits.set_stage(PermitStage::Attempting);
        state.launched(this.options.delay(), now);
        this.copies.push(HedgedCopy { attempt: Box::pin((this.operation)()), number, started: now, permits });
    }

    /// Polls the attempts in flight. Returns the end of the call if one of them ends it.
    fn poll_attempts(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Option<Hedged<V, E>> {
        let mut this = self.as_mut().project();
        if let Some(Poll::Ready(result)) = this.first.as_mut().as_pin_mut().map(|first| first.poll(cx)) {
            this.first.set(None);
            let started = *this.first_started;
            let mut permits = core::mem::replace(this.first_permits, HeldPermits::EMPTY);
            if let Some(end) = self.as_mut().completed(0, started, &mut permits, result) {
                return Some(end);
            }
        }
        let mut at = 0;
        loop {
            let this = self.as_mut().project();
            let copy = this.copies.get_mut(at)?;
            let Poll::Ready(result) = copy.attempt.as_mut().poll(cx) else {
                at += 1;
                continue;
            };
            let HedgedCopy { number, started, mut permits, .. } = this.copies.swap_remove(at);
            if let Some(end) = self.as_mut().completed(number, started, &mut permits, result) {
                return Some(end);
            }
        }
    }

    /// Records the result of an attempt: 0 is the first. Returns the end of the call if the attempt ends it.
    fn completed(
        mut self: Pin<&mut Self>,
        number: u32,
        started: Instant,
        permits: &mut HeldPermits<CallGuards<'_>, T>,
        result: Result<V, E>,
    ) -> Option<Hedged<V, E>> {
        let mut this = self.as_mut().project();
        let now = this.timer.now();
        let outcome = match &result {
            Ok(_) => Outcome::Success,
            Err(error) => this.rule.outcome(error, this.options.retrier.map(|retrier| &retrier.rules)),
        };
        permits.record(&outcome, now);
        // An error that a rule classifies as success is still an error. A copy that fails never ends the call.
        let is_final = matches!(outcome, Outcome::Permanent | Outcome::UnsafeToRetry { .. } | Outcome::Success);
        match result {
            Ok(value) => {
                this.options.record_latency(started, now);
                if this.first.is_some() {
                    this.options.record_latency(*this.first_started, now);
                    this.first.set(None);
                    this.first_permits.settle();
                }
                Some(self.end(Ok(value), Some(number), Action::Done))
            }
            Err(error) if number == 0 && is_final => {
                let stop = if matches!(outcome, Outcome::UnsafeToRetry { .. }) {
                    StopReason::UnsafeToRetry
                } else {
                    StopReason::Permanent
                };
                Some(self.end(Err(error), None, Action::Stop(stop)))
            }
            Err(error) => {
                // The error of the first attempt is returned, whenever it failed.
                if number == 0 || this.error.is_none() {
                    *this.error = Some((number, error));
                }
                if let Some(state) = this.state {
                    state.failed(&outcome, now);
                }
                None
            }
        }
    }

    /// Ends the call: cancels the copies that still run, records how long each has taken so far, and starts no other.
    fn end(self: Pin<&mut Self>, result: Result<V, E>, winner: Option<u32>, action: Action) -> Hedged<V, E> {
        let this = self.project();
        let now = this.timer.now();
        for copy in this.copies.drain(..) {
            this.options.record_latency(copy.started, now);
        }
        let mut launched = 0;
        if let Some(state) = this.state {
            state.rejected();
            launched = state.count();
        }
        let error = result.as_ref().err().map(|error| error as &dyn EventError);
        this.options.emit(launched, now.saturating_since(*this.first_started), action, error);
        Hedged { result, winner, launched, rejected: this.rejected.is_some() }
    }
}

impl HedgeOptions<'_> {
    /// Puts the guards of the retrier before those of the call, in whatever order they were set.
    fn add_guards_of_retrier(&mut self) {
        if let Some(retrier) = self.retrier {
            let of_call = self.guards;
            self.guards = retrier.call_guards();
            self.guards.extend(&of_call);
        }
    }

    /// Returns the delay before the next copy.
    fn delay(&self) -> Duration {
        self.hedge.delay_now(self.latencies)
    }

    fn record_latency(&self, started: Instant, now: Instant) {
        if let Some(latencies) = self.latencies {
            latencies.record(now.saturating_since(started));
        }
    }

    /// Passes an event to the listeners of the retrier.
    fn emit(&self, attempt: u32, elapsed: Duration, action: Action, error: Option<&dyn EventError>) {
        if let Some(retrier) = self.retrier {
            retrier.emit(|| Event {
                target: "",
                attempt,
                max_attempts: None,
                elapsed,
                budget_left: retrier.guards().available(),
                action,
                error,
                retry_in: None,
                unreachable: None,
                rules: None,
            });
        }
    }
}

/// Holds the permits of an attempt that has come this far.
fn held<'h, T: Sleep + Clone>(
    permits: Permits,
    stage: PermitStage,
    guards: CallGuards<'h>,
    timer: &T,
) -> HeldPermits<CallGuards<'h>, T> {
    let mut held = HeldPermits::EMPTY;
    let source = || if guards.guards().is_unguarded() { None } else { Some((guards, timer.clone())) };
    held.hold(permits, stage, guards.nested, source);
    held
}
