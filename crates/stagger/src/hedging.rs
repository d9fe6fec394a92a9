use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::rule::{BuiltIn, Classify, Rule, When};
use crate::{
    Budget, FailureKind, Instant, Outcome, guard::BudgetPermit, hedge::Hedge, hedge::HedgeState, hedge::Latencies,
    time::Clock, time::Sleep,
};

/// Runs an async operation, and starts a second copy if the first is slow. The first success wins, and the others are
/// cancelled.
///
/// - A copy that fails never fails the call. If all fail, the error of the first attempt is returned.
/// - If the first attempt fails, the next copy starts immediately, unless the failure is permanent, which ends the
///   call.
/// - If there is a [`budget`](Hedging::budget), each copy needs a permit from it. A rejected copy is not started, and
///   nothing else changes.
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
pub fn hedge<F, O, V, E>(hedge: &Hedge, operation: F) -> Hedging<'_, F, O, E, BuiltIn, crate::time::Tokio>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
{
    hedge_with_timer(hedge, crate::time::Tokio, operation)
}

/// Runs a hedged operation on another timer; see [`hedge`](fn@crate::hedge::hedge).
pub fn hedge_with_timer<F, O, V, E, T>(hedge: &Hedge, timer: T, operation: F) -> Hedging<'_, F, O, E, BuiltIn, T>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    T: Sleep + Clone,
{
    Hedging::new(hedge, operation, BuiltIn, timer, None, None)
}

pin_project! {
    /// The future returned by [`hedge`](fn@crate::hedge), and the builder that configures it.
    #[must_use = "futures do nothing unless polled"]
    pub struct Hedging<'h, F, O, E, R, T: Sleep> {
        hedge: &'h Hedge,
        operation: F,
        rule: R,
        timer: T,
        budget: Option<&'h dyn Budget>,
        latencies: Option<&'h Latencies>,
        state: Option<HedgeState>,
        #[pin]
        first: Option<O>,
        first_started: Instant,
        first_permit: Option<HeldPermit<'h, T>>,
        copies: Vec<Copy<'h, O, T>>,
        sleeping: Option<T::Sleeping>,
        armed_for: Option<Instant>,
        // The first attempt's error; until there is one, the error of a copy.
        error: Option<(u32, E)>,
        rejected: bool,
    }
}

/// A copy in flight.
struct Copy<'h, O, T: Clock> {
    attempt: Pin<Box<O>>,
    number: u32,
    started: Instant,
    permit: HeldPermit<'h, T>,
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
    /// Whether the budget rejected a copy, after which no more were started.
    pub rejected: bool,
}

impl<'h, F, O, E, R, T: Sleep> Hedging<'h, F, O, E, R, T> {
    const fn new(
        hedge: &'h Hedge,
        operation: F,
        rule: R,
        timer: T,
        budget: Option<&'h dyn Budget>,
        latencies: Option<&'h Latencies>,
    ) -> Self {
        Self {
            hedge,
            operation,
            rule,
            timer,
            budget,
            latencies,
            state: None,
            first: None,
            first_started: Instant::ZERO,
            first_permit: None,
            copies: Vec::new(),
            sleeping: None,
            armed_for: None,
            error: None,
            rejected: false,
        }
    }

    /// Sets the budget that every copy must acquire a permit from; it is also notified of the first attempt. Default:
    /// none. A budget under an [operator control](crate::control) limits and disables copies together with retries.
    pub fn budget(mut self, budget: &'h dyn Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets the recorder of attempt latencies, which a quantile delay is computed from. Share one between the calls to
    /// a target. Default: none, so a quantile delay uses its fallback.
    pub fn latencies(mut self, latencies: &'h Latencies) -> Self {
        self.latencies = Some(latencies);
        self
    }

    /// Sets which errors are transient; all others are permanent. A permanent error of the first attempt ends the call.
    pub fn when<P: Fn(&E) -> bool>(self, is_transient: P) -> Hedging<'h, F, O, E, When<P>, T> {
        self.with_rule(When(is_transient))
    }

    /// Sets the rule that classifies errors, returning the full [`Outcome`].
    pub fn classify<P: Fn(&E) -> Outcome>(self, rule: P) -> Hedging<'h, F, O, E, Classify<P>, T> {
        self.with_rule(Classify(rule))
    }

    /// Sets the output to [`Hedged`]: the result, the winner, and the number of attempts started.
    pub const fn with_report(self) -> HedgingReport<'h, F, O, E, R, T> {
        HedgingReport { hedging: self }
    }

    fn with_rule<R2>(self, rule: R2) -> Hedging<'h, F, O, E, R2, T> {
        Hedging::new(self.hedge, self.operation, rule, self.timer, self.budget, self.latencies)
    }
}

impl<F, O, E, R, T: Sleep> fmt::Debug for Hedging<'_, F, O, E, R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedging").field("hedge", self.hedge).field("state", &self.state).finish_non_exhaustive()
    }
}

impl<F, O, V, E, R, T> Hedging<'_, F, O, E, R, T>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    R: Rule<E>,
    T: Sleep + Clone,
{
    fn poll_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Hedged<V, E>> {
        let mut this = self.project();
        let state = match this.state {
            Some(state) => state,
            None => {
                let now = this.timer.now();
                *this.first_started = now;
                *this.first_permit =
                    this.budget.map(|budget| HeldPermit::new(budget, budget.on_first_attempt(&now), this.timer));
                this.first.set(Some((this.operation)()));
                this.state.insert(HedgeState::new(this.hedge, this.hedge.delay_now(*this.latencies), now))
            }
        };
        loop {
            if let Some(first) = this.first.as_mut().as_pin_mut() {
                if let Poll::Ready(result) = first.poll(cx) {
                    this.first.set(None);
                    let now = this.timer.now();
                    let outcome = result.as_ref().map_or_else(|error| this.rule.outcome(error), |_| Outcome::Success);
                    record_outcome(this.first_permit.take(), &outcome, now);
                    // An error that a rule classifies as success is still an error.
                    let is_final = matches!(outcome, Outcome::Permanent | Outcome::UnsafeToRetry(_) | Outcome::Success);
                    match result {
                        Ok(value) => {
                            record_latency(*this.latencies, *this.first_started, now);
                            cancel_copies(this.copies, *this.latencies, now);
                            return Poll::Ready(end(state, Ok(value), Some(0), *this.rejected));
                        }
                        Err(error) if is_final => {
                            cancel_copies(this.copies, *this.latencies, now);
                            return Poll::Ready(end(state, Err(error), None, *this.rejected));
                        }
                        Err(error) => {
                            *this.error = Some((0, error));
                            state.failed(&outcome, now);
                        }
                    }
                }
            }
            let mut at = 0;
            while let Some(copy) = this.copies.get_mut(at) {
                let Poll::Ready(result) = copy.attempt.as_mut().poll(cx) else {
                    at += 1;
                    continue;
                };
                let Copy { number, started, permit, .. } = this.copies.swap_remove(at);
                let now = this.timer.now();
                let outcome = result.as_ref().map_or_else(|error| this.rule.outcome(error), |_| Outcome::Success);
                record_outcome(Some(permit), &outcome, now);
                match result {
                    Ok(value) => {
                        record_latency(*this.latencies, started, now);
                        if this.first.is_some() {
                            record_latency(*this.latencies, *this.first_started, now);
                            this.first.set(None);
                            *this.first_permit = None;
                        }
                        cancel_copies(this.copies, *this.latencies, now);
                        return Poll::Ready(end(state, Ok(value), Some(number), *this.rejected));
                    }
                    Err(error) => {
                        this.error.get_or_insert((number, error));
                        state.failed(&outcome, now);
                    }
                }
            }
            let is_running = this.first.is_some() || !this.copies.is_empty();
            let Some(due) = state.due() else {
                return match this.error.take_if(|_| !is_running) {
                    Some((_, error)) => Poll::Ready(end(state, Err(error), None, *this.rejected)),
                    // No error yet: an attempt is still running. Or the call has already ended.
                    None => Poll::Pending,
                };
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
            let permit = match *this.budget {
                None => None,
                Some(budget) => match budget.try_acquire(FailureKind::Transient, &now) {
                    Some(permit) => Some((budget, permit)),
                    None => {
                        state.rejected();
                        *this.rejected = true;
                        continue;
                    }
                },
            };
            let number = state.count();
            state.launched(this.hedge.delay_now(*this.latencies), now);
            this.copies.push(Copy {
                permit: HeldPermit::from_option(permit, this.timer),
                attempt: Box::pin((this.operation)()),
                number,
                started: now,
            });
        }
    }
}

impl<F, O, V, E, R, T> Future for Hedging<'_, F, O, E, R, T>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    R: Rule<E>,
    T: Sleep + Clone,
{
    type Output = Result<V, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<V, E>> {
        self.poll_end(cx).map(|end| end.result)
    }
}

pin_project! {
    /// The future returned by [`Hedging::with_report`].
    #[must_use = "futures do nothing unless polled"]
    pub struct HedgingReport<'h, F, O, E, R, T: Sleep> {
        #[pin]
        hedging: Hedging<'h, F, O, E, R, T>,
    }
}

impl<F, O, E, R, T: Sleep> fmt::Debug for HedgingReport<'_, F, O, E, R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hedging.fmt(f)
    }
}

impl<F, O, V, E, R, T> Future for HedgingReport<'_, F, O, E, R, T>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    R: Rule<E>,
    T: Sleep + Clone,
{
    type Output = Hedged<V, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Hedged<V, E>> {
        self.project().hedging.poll_end(cx)
    }
}

/// Ends the call: no further copy is started.
fn end<V, E>(state: &mut HedgeState, result: Result<V, E>, winner: Option<u32>, rejected: bool) -> Hedged<V, E> {
    state.rejected();
    Hedged { result, winner, launched: state.count(), rejected }
}

/// Cancels the copies that still run, and records how long each has taken so far.
fn cancel_copies<O, T: Clock>(copies: &mut Vec<Copy<'_, O, T>>, latencies: Option<&Latencies>, now: Instant) {
    for copy in copies.drain(..) {
        record_latency(latencies, copy.started, now);
    }
}

fn record_latency(latencies: Option<&Latencies>, started: Instant, now: Instant) {
    if let Some(latencies) = latencies {
        latencies.record(now.saturating_since(started));
    }
}

fn record_outcome<T: Clock>(permit: Option<HeldPermit<'_, T>>, outcome: &Outcome, now: Instant) {
    if let Some(permit) = permit {
        permit.record(outcome, now);
    }
}

/// The permit of an attempt, with the budget that granted it. Dropping it settles the attempt as cancelled.
struct HeldPermit<'h, T: Clock> {
    permit: Option<(&'h dyn Budget, BudgetPermit)>,
    clock: T,
}

impl<'h, T: Clock + Clone> HeldPermit<'h, T> {
    fn new(budget: &'h dyn Budget, permit: BudgetPermit, clock: &T) -> Self {
        Self::from_option(Some((budget, permit)), clock)
    }

    fn from_option(permit: Option<(&'h dyn Budget, BudgetPermit)>, clock: &T) -> Self {
        Self { permit, clock: clock.clone() }
    }
}

impl<T: Clock> HeldPermit<'_, T> {
    fn record(mut self, outcome: &Outcome, now: Instant) {
        if let Some((budget, permit)) = self.permit.take() {
            budget.record(permit, outcome, &now);
        }
    }
}

impl<T: Clock> Drop for HeldPermit<'_, T> {
    fn drop(&mut self) {
        if let Some((budget, permit)) = self.permit.take() {
            budget.record(permit, &Outcome::Cancelled, &self.clock.now());
        }
    }
}
