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

/// Calls an async operation, and calls it a second time if the first is slow: the first success wins, and the others are
/// cancelled.
///
/// - A copy that fails never fails the call. If all fail, what comes back is the error of the first attempt.
/// - A first attempt that fails brings the next copy on at once, unless the failure is permanent, which ends the call.
/// - A copy is paid for by the [`budget`](Hedging::budget), if there is one; what it refuses is not launched, and nothing
///   else changes.
/// - Only for operations that may run twice at once: each copy is a call of its own to the server.
/// - Dropping the future drops every copy. Cancel-safe.
///
/// It is no retry: wrap it in one, and every attempt of that is hedged.
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

/// [`hedge`](fn@crate::hedge::hedge) on another timer.
pub fn hedge_with_timer<F, O, V, E, T>(hedge: &Hedge, timer: T, operation: F) -> Hedging<'_, F, O, E, BuiltIn, T>
where
    F: FnMut() -> O,
    O: Future<Output = Result<V, E>>,
    T: Sleep + Clone,
{
    Hedging::new(hedge, operation, BuiltIn, timer, None, None)
}

pin_project! {
    /// A call that gets a second copy if it is slow: the future that [`hedge`](fn@crate::hedge) gives, and its builder.
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
        first_loan: Option<Lent<'h, T>>,
        copies: Vec<Copy<'h, O, T>>,
        sleeping: Option<T::Sleeping>,
        armed_for: Option<Instant>,
        // The first attempt's error, or that of a copy as long as there is none of the first.
        error: Option<(u32, E)>,
        refused: bool,
    }
}

/// A copy that runs.
struct Copy<'h, O, T: Clock> {
    attempt: Pin<Box<O>>,
    number: u32,
    started: Instant,
    loan: Lent<'h, T>,
}

/// How a hedged call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hedged<V, E> {
    /// The value of the winner, or the error of the first attempt.
    pub result: Result<V, E>,
    /// Which attempt won: 0 for the first, 1 for the first copy; `None` if none did.
    pub winner: Option<u32>,
    /// How many attempts were launched, the first included.
    pub launched: u32,
    /// Whether the budget refused a copy, after which there were no more.
    pub refused: bool,
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
            first_loan: None,
            copies: Vec::new(),
            sleeping: None,
            armed_for: None,
            error: None,
            refused: false,
        }
    }

    /// Every copy is a loan from this budget, and refused if it lends nothing; the first attempt is told to it as well.
    /// With one that is under a [operator control](crate::control), copies are turned down and off with the retries.
    pub fn budget(mut self, budget: &'h dyn Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// How long attempts take is counted here, and a delay that is a quantile is taken from here. Share it between the
    /// calls to one target.
    pub fn latencies(mut self, latencies: &'h Latencies) -> Self {
        self.latencies = Some(latencies);
        self
    }

    /// Which errors are transient. Every other one is permanent.
    pub fn when<P: Fn(&E) -> bool>(self, is_transient: P) -> Hedging<'h, F, O, E, When<P>, T> {
        self.with_rule(When(is_transient))
    }

    /// What each error means.
    pub fn classify<P: Fn(&E) -> Outcome>(self, rule: P) -> Hedging<'h, F, O, E, Classify<P>, T> {
        self.with_rule(Classify(rule))
    }

    /// Gives [`Hedged`]: who won, and how many were launched.
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
                *this.first_loan =
                    this.budget.map(|budget| Lent::new(budget, budget.on_first_attempt(&now), this.timer));
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
                    settle(this.first_loan.take(), &outcome, now);
                    // An error that a rule takes for success is an error all the same.
                    let is_final = matches!(outcome, Outcome::Permanent | Outcome::UnsafeToRetry(_) | Outcome::Success);
                    match result {
                        Ok(value) => {
                            see(*this.latencies, *this.first_started, now);
                            lose(this.copies, *this.latencies, now);
                            return Poll::Ready(end(state, Ok(value), Some(0), *this.refused));
                        }
                        Err(error) if is_final => {
                            lose(this.copies, *this.latencies, now);
                            return Poll::Ready(end(state, Err(error), None, *this.refused));
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
                let Copy { number, started, loan, .. } = this.copies.swap_remove(at);
                let now = this.timer.now();
                let outcome = result.as_ref().map_or_else(|error| this.rule.outcome(error), |_| Outcome::Success);
                settle(Some(loan), &outcome, now);
                match result {
                    Ok(value) => {
                        see(*this.latencies, started, now);
                        if this.first.is_some() {
                            see(*this.latencies, *this.first_started, now);
                            this.first.set(None);
                            *this.first_loan = None;
                        }
                        lose(this.copies, *this.latencies, now);
                        return Poll::Ready(end(state, Ok(value), Some(number), *this.refused));
                    }
                    Err(error) => {
                        this.error.get_or_insert((number, error));
                        state.failed(&outcome, now);
                    }
                }
            }
            let runs = this.first.is_some() || !this.copies.is_empty();
            let Some(due) = state.due() else {
                return match this.error.take_if(|_| !runs) {
                    Some((_, error)) => Poll::Ready(end(state, Err(error), None, *this.refused)),
                    // There is no error only as long as something runs, and after the end.
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
                // It may have woken up early.
                *this.armed_for = None;
                continue;
            }
            let loan = match *this.budget {
                None => None,
                Some(budget) => match budget.try_acquire(FailureKind::Transient, &now) {
                    Some(loan) => Some((budget, loan)),
                    None => {
                        state.refused();
                        *this.refused = true;
                        continue;
                    }
                },
            };
            let number = state.count();
            state.launched(this.hedge.delay_now(*this.latencies), now);
            this.copies.push(Copy {
                loan: Lent::of(loan, this.timer),
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
    /// The future that [`Hedging::report`] gives.
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

/// Nothing is launched after the end.
fn end<V, E>(state: &mut HedgeState, result: Result<V, E>, winner: Option<u32>, refused: bool) -> Hedged<V, E> {
    state.refused();
    Hedged { result, winner, launched: state.count(), refused }
}

/// Those that still run have lost: how long they took so far counts.
fn lose<O, T: Clock>(copies: &mut Vec<Copy<'_, O, T>>, latencies: Option<&Latencies>, now: Instant) {
    for copy in copies.drain(..) {
        see(latencies, copy.started, now);
    }
}

fn see(latencies: Option<&Latencies>, started: Instant, now: Instant) {
    if let Some(latencies) = latencies {
        latencies.record(now.saturating_since(started));
    }
}

fn settle<T: Clock>(loan: Option<Lent<'_, T>>, outcome: &Outcome, now: Instant) {
    if let Some(loan) = loan {
        loan.settle(outcome, now);
    }
}

/// A loan with the budget that gave it. Dropped, its attempt was cancelled.
struct Lent<'h, T: Clock> {
    lent: Option<(&'h dyn Budget, BudgetPermit)>,
    clock: T,
}

impl<'h, T: Clock + Clone> Lent<'h, T> {
    fn new(budget: &'h dyn Budget, loan: BudgetPermit, clock: &T) -> Self {
        Self::of(Some((budget, loan)), clock)
    }

    fn of(lent: Option<(&'h dyn Budget, BudgetPermit)>, clock: &T) -> Self {
        Self { lent, clock: clock.clone() }
    }
}

impl<T: Clock> Lent<'_, T> {
    fn settle(mut self, outcome: &Outcome, now: Instant) {
        if let Some((budget, loan)) = self.lent.take() {
            budget.record(loan, outcome, &now);
        }
    }
}

impl<T: Clock> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        if let Some((budget, loan)) = self.lent.take() {
            budget.record(loan, &Outcome::Cancelled, &self.clock.now());
        }
    }
}
