//! Runs a case with each driver.

use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::pin::pin;
use std::sync::{Arc, Mutex};

use stagger::batch::Batch;
use stagger::observe::{Action, Event};
use stagger::queue::{GaveUp, GiveUpReason, Job, Queued, RetryQueue};
use stagger::testing::VirtualClock;
use stagger::time::Sleep;
use stagger::{Cause, Error, PollRetry, Retrier, StopReason, blocking};

use super::Case;
use super::script::{Completion, DecisionRecord, Trace, check};
use crate::suite::support::Fail;

/// A timer, and a way to let time pass during an attempt.
pub(crate) trait Environment {
    type Timer: Sleep + Clone;

    fn timer(&self) -> Self::Timer;

    fn elapse(&self, length: core::time::Duration) -> impl Future<Output = ()>;
}

fn record(event: &Event<'_>) -> DecisionRecord {
    let Event { attempt, action, elapsed, budget_left, .. } = *event;
    DecisionRecord { attempt, action, elapsed, budget_left }
}

fn trace(decisions: Vec<DecisionRecord>, result: Result<u32, Error<Fail>>, calls: usize) -> Trace {
    Trace { decisions, completion: Some(Completion::from(result)), calls }
}

/// Returns the index of the next call, from 0.
fn next_call(calls: &Cell<usize>) -> usize {
    calls.replace(calls.get() + 1)
}

/// `blocking::retry`.
pub(crate) fn blocking(case: &Case<'_>) -> Trace {
    let (clock, calls, records) = (VirtualClock::new(), Cell::new(0), RefCell::new(Vec::new()));
    let listen = |event: &Event<'_>| records.borrow_mut().push(record(event));
    let (budget, breaker) = case.guards();
    let call = blocking::retry(case.policy, || {
        let scripted = case.script.attempt(next_call(&calls));
        clock.advance(scripted.duration);
        scripted.marked_result()
    });
    let call = call.timer(clock.clone()).seed(case.seed).validate(check).classify(Fail::outcome);
    let result = match (&budget, &breaker) {
        (Some(budget), Some(breaker)) => call.guard(&**breaker).guard(&**budget).on_event(listen).run(),
        _ => call.on_event(listen).detailed().run(),
    };
    trace(records.into_inner(), result, calls.get())
}

/// `retry_with_timer`.
pub(crate) async fn retry<W: Environment>(case: &Case<'_>, environment: &W) -> Trace {
    let (calls, records) = (Cell::new(0), RefCell::new(Vec::new()));
    let listen = |event: &Event<'_>| records.borrow_mut().push(record(event));
    let (budget, breaker) = case.guards();
    let call = stagger::retry_with_timer(case.policy, environment.timer(), async || {
        let scripted = case.script.attempt(next_call(&calls));
        environment.elapse(scripted.duration).await;
        scripted.marked_result()
    });
    let call = call.seed(case.seed).validate(check).classify(Fail::outcome);
    let result = match (&budget, &breaker) {
        (Some(budget), Some(breaker)) => call.guard(&**breaker).guard(&**budget).on_event(listen).await,
        _ => call.on_event(listen).detailed().await,
    };
    trace(records.into_inner(), result, calls.get())
}

type Records = Arc<Mutex<Vec<DecisionRecord>>>;

fn retrier(case: &Case<'_>) -> (Retrier, Records) {
    let records = Records::default();
    let listener = Arc::clone(&records);
    let mut retrier = Retrier::new(*case.policy)
        .seed(case.seed)
        .classify(Fail::outcome)
        .on_event(move |event| listener.lock().unwrap().push(record(event)));
    if let (Some(budget), Some(breaker)) = case.guards() {
        retrier = retrier.shared_guard(breaker).shared_guard(budget);
    }
    (retrier, records)
}

fn take(records: &Records) -> Vec<DecisionRecord> {
    core::mem::take(&mut records.lock().unwrap())
}

/// `Retrier::blocking_call`.
pub(crate) fn retrier_blocking(case: &Case<'_>) -> Trace {
    let (clock, calls) = (VirtualClock::new(), Cell::new(0));
    let (retrier, records) = retrier(case);
    let result = retrier
        .blocking_call(|_| {
            let scripted = case.script.attempt(next_call(&calls));
            clock.advance(scripted.duration);
            scripted.marked_result()
        })
        .timer(clock.clone())
        .validate(check)
        .run();
    trace(take(&records), result, calls.get())
}

/// `Retrier::run_on`.
pub(crate) async fn run<W: Environment>(case: &Case<'_>, environment: &W) -> Trace {
    let calls = Cell::new(0);
    let (retrier, records) = retrier(case);
    let call = retrier.run_on(environment.timer(), async || {
        let scripted = case.script.attempt(next_call(&calls));
        environment.elapse(scripted.duration).await;
        scripted.marked_result()
    });
    let result = call.validate(check).await;
    trace(take(&records), result, calls.get())
}

/// `Retrier::run_with_on`.
pub(crate) async fn run_with<W: Environment>(case: &Case<'_>, environment: &W) -> Trace {
    let mut calls = 0;
    let (retrier, records) = retrier(case);
    let result = retrier
        .run_with_on(environment.timer(), &mut calls, async |calls: &mut usize, _| {
            let scripted = case.script.attempt(*calls);
            *calls += 1;
            environment.elapse(scripted.duration).await;
            scripted.plain_result()
        })
        .await;
    trace(take(&records), result, calls)
}

/// `RetryLoop`.
pub(crate) async fn retry_loop<W: Environment>(case: &Case<'_>, environment: &W) -> Trace {
    let mut calls = 0;
    let (retrier, records) = retrier(case);
    let mut call = retrier.call_on(environment.timer());
    let result = loop {
        let attempt = async {
            let scripted = case.script.attempt(calls);
            calls += 1;
            environment.elapse(scripted.duration).await;
            scripted.plain_result()
        };
        if let Some(done) = call.attempt(attempt).await {
            break done;
        }
    };
    trace(take(&records), result, calls)
}

/// `PollRetry`, untimed: only the listener reads the clock.
pub(crate) async fn poll_retry<W: Environment>(case: &Case<'_>, environment: &W) -> Trace {
    let mut calls = 0;
    let (retrier, records) = retrier(case);
    let mut call = PollRetry::new(&retrier, environment.timer()).untimed();
    let mut last_error = None;
    let result = loop {
        if let Err(rejected) = poll_fn(|cx| call.poll_begin(cx)).await {
            let last = last_error.map_or(Cause::Rejected(rejected), Cause::Operation);
            break Err(call.error(StopReason::BREAKER, last));
        }
        let scripted = case.script.attempt(calls);
        calls += 1;
        let mut future = pin!(async {
            environment.elapse(scripted.duration).await;
            scripted.plain_result()
        });
        match poll_fn(|cx| call.attempt(|| future.as_mut().poll(cx))).await {
            Ok(value) => {
                call.succeeded();
                break Ok(value);
            }
            Err(error) => {
                if let Some(stop) = call.failed(call.outcome(&error), Some(&error)) {
                    break Err(call.error(stop, Cause::Operation(error)));
                }
                last_error = Some(error);
            }
        }
    };
    trace(take(&records), result, calls)
}

/// `RetryQueue::push_retry`, with the outcome by the rules of the retrier.
pub(crate) async fn queue_by_outcome<W: Environment>(case: &Case<'_>, environment: &W) -> Trace {
    queue(case, environment, |queue, job, error| {
        let outcome = job.outcome(&error);
        queue.push_retry(job, outcome)
    })
    .await
}

/// `RetryQueue::push_failed`.
pub(crate) async fn queue_by_error<W: Environment>(case: &Case<'_>, environment: &W) -> Trace {
    queue(case, environment, |queue, job, error| queue.push_failed(job, &error)).await
}

/// A queue with one item.
async fn queue<W: Environment>(
    case: &Case<'_>,
    environment: &W,
    push: impl Fn(&mut RetryQueue<(), W::Timer>, Job<(), W::Timer>, Fail) -> Result<Queued, GaveUp<()>>,
) -> Trace {
    let (retrier, records) = retrier(case);
    let mut queue = RetryQueue::with_timer(environment.timer(), &retrier);
    queue.push((), core::time::Duration::ZERO).unwrap();
    let (mut calls, mut has_failed) = (0, false);
    let result = loop {
        let job = match queue.next().await.expect("the item is pending") {
            Ok(job) => job,
            Err(rejected) => break Err(rejected),
        };
        let scripted = case.script.attempt(calls);
        calls += 1;
        environment.elapse(scripted.duration).await;
        match scripted.plain_result() {
            Ok(value) => {
                job.succeeded();
                break Ok(value);
            }
            Err(error) => {
                has_failed = true;
                if let Err(gave_up) = push(&mut queue, job, error) {
                    break Err(gave_up);
                }
            }
        }
    };
    let result = result.map_err(|gave_up| match gave_up.reason {
        GiveUpReason::Stop(stop) => (stop, gave_up.attempts),
        other => panic!("{other:?}"),
    });
    stopped_trace(take(&records), result, has_failed, calls)
}

/// A `Batch` of one item.
pub(crate) async fn batch<W: Environment>(case: &Case<'_>, environment: &W) -> Trace {
    let (retrier, records) = retrier(case);
    let mut batch = Batch::with_timer(environment.timer(), &retrier, [("id", ())]);
    let (mut calls, mut value) = (0, None);
    while batch.next_attempt().await {
        let scripted = case.script.attempt(calls);
        calls += 1;
        environment.elapse(scripted.duration).await;
        match scripted.plain_result() {
            Ok(succeeded) => value = Some(succeeded),
            Err(error) => batch.failed_with("id", error).unwrap(),
        }
    }
    let finished = batch.finish();
    assert_eq!(finished.succeeded(), usize::from(value.is_some()));
    let failed = finished.into_failed().next();
    let has_failed = failed.as_ref().is_some_and(|failed| failed.error.is_some());
    let decisions = take(&records);
    // An item may have a reason of its own, such as a hint after the last attempt.
    let result = value.ok_or_else(|| match decisions.last().unwrap().action {
        Action::Stop(stop) => (stop, failed.unwrap().attempts),
        other => panic!("{other:?}"),
    });
    stopped_trace(decisions, result, has_failed, calls)
}

/// Returns the trace of a driver whose result has no elapsed time; that of the last event is the same.
fn stopped_trace(
    decisions: Vec<DecisionRecord>,
    result: Result<u32, (StopReason, u32)>,
    has_failed: bool,
    calls: usize,
) -> Trace {
    let elapsed = decisions.last().unwrap().elapsed;
    let completion = match result {
        Ok(value) => Completion::Value(value),
        Err((stop, attempts)) if has_failed => Completion::Failed { stop, attempts, elapsed },
        Err((stop, attempts)) => Completion::Rejected { stop, attempts, elapsed },
    };
    Trace { decisions, completion: Some(completion), calls }
}
