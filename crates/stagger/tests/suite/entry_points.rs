//! Everything that a [`Retrier`] shares applies at every entry point: its name, listeners, rules, guards and operator
//! controls.

use core::future::poll_fn;
use core::num::NonZeroU32;

use futures_lite::future::block_on;
use stagger::batch::Batch;
use stagger::budget::ControlMode;
use stagger::control::RetryControls;
use stagger::hedge::{Hedge, hedge_with_timer};
use stagger::machine::ReconnectStep;
use stagger::observe::Action;
use stagger::queue::RetryQueue;
use stagger::reconnect::{Reconnect, ReconnectDriver, Ticker};
use stagger::testing::{Recorder, VirtualClock};
use stagger::{DelaySource, Outcome, Policy, PollRetry, Retrier, StopReason, blocking, policy};

use super::support::{Fail, ms};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));
const HEDGE: Hedge = Hedge::after(ms(10)).with_max_copies(2);

/// Attempts to run with this error until nothing follows, on a clock in virtual time.
pub(super) type Run = fn(&Retrier, &VirtualClock, Fail);

/// The entry points that make attempts and retry them.
pub(super) const RETRYING: [(&str, Run); 10] = [
    ("Retrier::run", |retrier, clock, fail| {
        block_on(retrier.run_on(clock, async || Err::<(), _>(fail))).unwrap_err();
    }),
    ("Retrier::blocking_call", |retrier, clock, fail| {
        retrier.blocking_call(|_| Err::<(), _>(fail)).timer(clock).run().unwrap_err();
    }),
    ("Retrier::run_with", |retrier, clock, fail| {
        let operation = async |_: &mut (), _| Err::<(), _>(fail);
        block_on(retrier.run_with_on(clock, &mut (), operation)).unwrap_err();
    }),
    ("Retrier::call", |retrier, clock, fail| {
        let mut call = retrier.call_on(clock);
        while block_on(call.attempt(async { Err::<(), _>(fail) })).is_none() {}
    }),
    ("PollRetry", |retrier, clock, fail| {
        let mut call = PollRetry::new(retrier, clock.clone());
        while block_on(poll_fn(|cx| call.poll_begin(cx))).is_ok() {
            let outcome = call.attempt(|| fail.outcome());
            if call.failed(outcome, Some(&fail)).is_some() {
                break;
            }
        }
    }),
    ("RetryQueue", |retrier, clock, fail| {
        let mut queue = RetryQueue::with_timer(clock.clone(), retrier);
        queue.push((), ms(0)).unwrap();
        while let Some(due) = block_on(queue.next()) {
            let _ = due.and_then(|job| queue.push_failed(job, &fail));
        }
    }),
    ("Batch", |retrier, clock, fail| {
        let mut batch = Batch::with_timer(clock.clone(), retrier, [("a", ()), ("b", ())]);
        let mut was_sent = false;
        while block_on(batch.next_attempt()) {
            batch.failed_with("b", fail).unwrap();
            was_sent = true;
        }
        assert_eq!(batch.finish().failed().count(), if was_sent { 1 } else { 2 });
    }),
    ("Reconnect::next", |retrier, clock, fail| {
        block_on(Reconnect::with_timer(clock, retrier, async || Err::<(), _>(fail)).next()).unwrap_err();
    }),
    ("Reconnect::next_blocking", |retrier, clock, fail| {
        Reconnect::with_timer(clock, retrier, || Err::<(), _>(fail)).next_blocking().unwrap_err();
    }),
    ("ReconnectDriver", |retrier, clock, fail| {
        let mut driver = ReconnectDriver::new(retrier, clock.clone());
        let mut step = driver.reconnect_now();
        loop {
            step = match step {
                ReconnectStep::Connect { generation } => driver.ended(generation, fail.outcome(), Some(&fail)),
                ReconnectStep::Wait { after, .. } => {
                    clock.advance(after);
                    driver.due()
                }
                _ => break,
            };
        }
    }),
];

/// Copies of a hedged call run beside its first attempt.
pub(super) const HEDGED: (&str, Run) = ("hedge", |retrier, clock, fail| {
    let call = hedge_with_timer(&HEDGE, clock.clone(), async || Err::<(), _>(fail)).retrier(retrier);
    block_on(call).unwrap_err();
});

/// A tick is not an attempt.
pub(super) const TICKERS: [(&str, Run); 2] = [
    ("Ticker", |retrier, clock, _| {
        let mut ticker = Ticker::with_timer(clock, retrier);
        while block_on(ticker.tick()).is_some() {}
    }),
    ("blocking::Ticker", |retrier, clock, _| {
        let mut ticker = blocking::Ticker::with_timer(clock, retrier);
        while ticker.next().is_some() {}
    }),
];

/// Runs an entry point with a listener, and returns the attempt and the action of each event.
fn events(retrier: Retrier, run: Run, fail: Fail) -> Vec<(u32, Action)> {
    let (recorder, clock) = (Recorder::new(), VirtualClock::new());
    let retrier = retrier.named("api").classify(Fail::outcome).on_event(recorder.listener());
    run(&retrier, &clock, fail);
    let events = recorder.events();
    assert!(events.iter().all(|event| event.target == "api"), "{events:?}");
    events.iter().map(|event| (event.attempt, event.action)).collect()
}

fn retry(millis: u64, source: DelaySource) -> Action {
    Action::Retry { after: ms(millis), source }
}

#[test]
fn listeners_receive_every_decision_under_the_name_of_the_retrier() {
    let stopped = (3, Action::Stop(StopReason::Attempts));
    let scheduled = retry(10, DelaySource::Schedule);
    for (name, run) in RETRYING.into_iter().chain([HEDGED]).chain(TICKERS) {
        let next = if name == "hedge" { retry(0, DelaySource::Hedge) } else { scheduled };
        assert_eq!(events(Retrier::new(POLICY), run, Fail::TRANSIENT), [(1, next), (2, next), stopped], "{name}");
    }
}

#[test]
fn a_connection_that_opens_is_reported() {
    let (recorder, clock) = (Recorder::new(), VirtualClock::new());
    let retrier = Retrier::new(POLICY).on_event(recorder.listener());
    block_on(Reconnect::with_timer(clock, retrier, async || Ok::<_, Fail>(())).next()).unwrap();
    let events: Vec<_> = recorder.events().iter().map(|event| (event.attempt, event.action)).collect();
    assert_eq!(events, [(1, Action::Done)]);
}

#[test]
fn rules_of_the_retrier_decide_which_errors_are_permanent() {
    for (name, run) in RETRYING.into_iter().chain([HEDGED]) {
        let got = events(Retrier::new(POLICY), run, Fail(Outcome::Permanent));
        assert_eq!(got, [(1, Action::Stop(StopReason::Permanent))], "{name}");
    }
}

#[test]
fn operator_controls_disable_retries_and_copies_but_no_ticks() {
    let controls = RetryControls::new();
    controls.set("*", ControlMode::NoRetries);
    let end = |run| events(Retrier::new(POLICY).controls(&controls), run, Fail::TRANSIENT);
    let stopped = [(1, Action::Stop(StopReason::CONTROL))];
    for (name, run) in RETRYING {
        assert_eq!(end(run), stopped, "{name}");
    }
    assert_eq!(end(HEDGED.1), stopped, "{}", HEDGED.0);
    for (name, run) in TICKERS {
        assert_eq!(end(run).len(), 3, "{name}");
    }
}

#[test]
fn the_retrier_of_every_entry_point_is_limited_by_its_policy() {
    let once = Retrier::new(POLICY).with(|policy| policy.max_attempts(NonZeroU32::MIN.get())).unwrap();
    for (name, run) in RETRYING {
        let got = events(once.clone(), run, Fail::TRANSIENT);
        assert_eq!(got, [(1, Action::Stop(StopReason::Attempts))], "{name}");
    }
}
