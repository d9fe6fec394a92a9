//! Every driver, run through one case.

use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::pin::pin;
use std::sync::{Arc, Mutex};

use stagger::testing::VirtualClock;
use stagger::{Cause, Error, Guards, PollRetry, Rejected, Retrier, StopReason, blocking, observe::Event, time::Sleep};

use super::Case;
use super::script::check;
use super::trace::{Decided, End, Trace};
use crate::suite::support::Fail;

/// A timer, and how time passes while an attempt is being made.
pub(crate) trait World {
    type Timer: Sleep + Clone;

    fn timer(&self) -> Self::Timer;

    fn pass(&self, length: core::time::Duration) -> impl Future<Output = ()>;
}

fn decided(event: &Event<'_>) -> Decided {
    let Event { attempt, action, elapsed, budget_left, .. } = *event;
    Decided { attempt, action, elapsed, budget_left }
}

fn trace(decisions: Vec<Decided>, result: Result<u32, Error<Fail>>, calls: usize) -> Trace {
    Trace { decisions, end: Some(End::from(result)), calls }
}

/// The next call, from 0.
fn counted(calls: &Cell<usize>) -> usize {
    calls.replace(calls.get() + 1)
}

/// `blocking::retry`.
pub(crate) fn blocking(case: &Case<'_>) -> Trace {
    let (clock, calls, seen) = (VirtualClock::new(), Cell::new(0), RefCell::new(Vec::new()));
    let listen = |event: &Event<'_>| seen.borrow_mut().push(decided(event));
    let (budget, breaker) = case.guards();
    let call = blocking::retry(case.policy, || {
        let play = case.script.play(counted(&calls));
        clock.advance(play.takes);
        play.raw()
    });
    let call = call.timer(clock.clone()).seed(case.seed).with_marks().validate(check).classify(Fail::outcome);
    let result = match (&budget, &breaker) {
        (Some(budget), Some(breaker)) => {
            let guards = Guards::none().budget(&**budget).breaker(&**breaker);
            call.guards(guards).on_event(listen).run()
        }
        _ => call.on_event(listen).detailed().run(),
    };
    trace(seen.into_inner(), result, calls.get())
}

/// `retry_with_timer`.
pub(crate) async fn retrying<W: World>(case: &Case<'_>, world: &W) -> Trace {
    let (calls, seen) = (Cell::new(0), RefCell::new(Vec::new()));
    let listen = |event: &Event<'_>| seen.borrow_mut().push(decided(event));
    let (budget, breaker) = case.guards();
    let call = stagger::retry_with_timer(case.policy, world.timer(), async || {
        let play = case.script.play(counted(&calls));
        world.pass(play.takes).await;
        play.raw()
    });
    let call = call.seed(case.seed).with_marks().validate(check).classify(Fail::outcome);
    let result = match (&budget, &breaker) {
        (Some(budget), Some(breaker)) => {
            let guards = Guards::none().budget(&**budget).breaker(&**breaker);
            call.guards(guards).on_event(listen).await
        }
        _ => call.on_event(listen).detailed().await,
    };
    trace(seen.into_inner(), result, calls.get())
}

type Seen = Arc<Mutex<Vec<Decided>>>;

fn retrier(case: &Case<'_>) -> (Retrier, Seen) {
    let seen = Seen::default();
    let listener = Arc::clone(&seen);
    let mut retrier = Retrier::new(*case.policy)
        .seed(case.seed)
        .classify(Fail::outcome)
        .on_event(move |event| listener.lock().unwrap().push(decided(event)));
    if let (Some(budget), Some(breaker)) = case.guards() {
        retrier = retrier.shared_budget(budget).shared_breaker(breaker);
    }
    (retrier, seen)
}

fn taken(seen: &Seen) -> Vec<Decided> {
    core::mem::take(&mut seen.lock().unwrap())
}

/// `Retrier::blocking_call`.
pub(crate) fn retrier_blocking(case: &Case<'_>) -> Trace {
    let (clock, calls) = (VirtualClock::new(), Cell::new(0));
    let (retrier, seen) = retrier(case);
    let result = retrier
        .blocking_call(|_| {
            let play = case.script.play(counted(&calls));
            clock.advance(play.takes);
            play.raw()
        })
        .timer(clock.clone())
        .with_marks()
        .validate(check)
        .run();
    trace(taken(&seen), result, calls.get())
}

/// `Retrier::run_on`.
pub(crate) async fn run<W: World>(case: &Case<'_>, world: &W) -> Trace {
    let calls = Cell::new(0);
    let (retrier, seen) = retrier(case);
    let call = retrier.run_on(world.timer(), async || {
        let play = case.script.play(counted(&calls));
        world.pass(play.takes).await;
        play.raw()
    });
    let result = call.with_marks().validate(check).await;
    trace(taken(&seen), result, calls.get())
}

/// `Retrier::run_with_on`.
pub(crate) async fn run_with<W: World>(case: &Case<'_>, world: &W) -> Trace {
    let mut calls = 0;
    let (retrier, seen) = retrier(case);
    let result = retrier
        .run_with_on(world.timer(), &mut calls, async |calls: &mut usize, _| {
            let play = case.script.play(*calls);
            *calls += 1;
            world.pass(play.takes).await;
            play.plain()
        })
        .await;
    trace(taken(&seen), result, calls)
}

/// `RetryLoop`.
pub(crate) async fn hand_call<W: World>(case: &Case<'_>, world: &W) -> Trace {
    let mut calls = 0;
    let (retrier, seen) = retrier(case);
    let mut call = retrier.call_on(world.timer());
    let result = loop {
        let attempt = async {
            let play = case.script.play(calls);
            calls += 1;
            world.pass(play.takes).await;
            play.plain()
        };
        if let Some(done) = call.attempt(attempt).await {
            break done;
        }
    };
    trace(taken(&seen), result, calls)
}

/// `PollRetry`, of which nobody asks the time but the listener.
pub(crate) async fn polled<W: World>(case: &Case<'_>, world: &W) -> Trace {
    let mut calls = 0;
    let (retrier, seen) = retrier(case);
    let mut call = PollRetry::new(&retrier, world.timer()).untimed();
    let mut kept = None;
    let result = loop {
        if let Err(open) = poll_fn(|cx| call.poll_begin(cx)).await {
            let last = kept.map_or(Cause::Rejected(Rejected::BreakerOpen(open)), Cause::Operation);
            break Err(call.error(StopReason::Breaker, last));
        }
        let play = case.script.play(calls);
        calls += 1;
        let mut future = pin!(async {
            world.pass(play.takes).await;
            play.plain()
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
                kept = Some(error);
            }
        }
    };
    trace(taken(&seen), result, calls)
}
