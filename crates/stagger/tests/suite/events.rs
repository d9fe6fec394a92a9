//! Events: one per decision, with all its data.

use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use futures_lite::future::block_on;
use stagger::observe::Action;
use stagger::testing::{NoSleep, Recorded, Recorder, Script, VirtualClock};
use stagger::{
    DelaySource, Guard, Outcome, Policy, Retrier, ServerHint, StopReason, blocking, policy, retry_with_timer,
};

use super::support::{Fail, RecordingBreaker, RecordingBudget, ms};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(5));

/// An event as a tuple: attempt, attempt limit, action, elapsed time, retries left in the budget.
type Fields = (u32, Option<u32>, Action, Duration, Option<u64>);

fn fields(event: &Recorded) -> Fields {
    (event.attempt, event.max_attempts.map(NonZeroU32::get), event.action, event.elapsed, event.budget_left)
}

#[test]
fn each_decision_emits_one_complete_event() {
    let (clock, recorder, budget) = (VirtualClock::new(), Recorder::new(), RecordingBudget::new(7));
    let hinted = Fail(Outcome::throttled(Some(ServerHint::Reserved(ms(25)))));
    let mut script = Script::new([Err(Fail(Outcome::NotProcessed)), Err(Fail::TRANSIENT), Err(hinted), Ok(())]);
    let operation = || {
        clock.advance(ms(1));
        script.next(Fail::TRANSIENT)
    };
    let call = blocking::retry(&POLICY, operation).timer(&clock).classify(Fail::outcome);
    call.guard(&budget).on_event(recorder.listener()).run().unwrap();

    let retry = |after, source| Action::Retry { after, source };
    let events: Vec<Fields> = recorder.events().iter().map(fields).collect();
    assert_eq!(
        events,
        [
            (1, Some(5), retry(ms(0), DelaySource::Transparent), ms(1), Some(7)),
            (1, Some(5), retry(ms(10), DelaySource::Schedule), ms(2), Some(6)),
            (2, Some(5), retry(ms(25), DelaySource::Hint), ms(13), Some(5)),
            (3, Some(5), Action::Done, ms(39), Some(5)),
        ]
    );
    assert_eq!(recorder.delays(), [ms(0), ms(10), ms(25)]);
}

/// An error that implements `Error`, whose text and `Debug` form differ.
#[derive(Debug)]
enum ApiError {
    Busy,
}

impl core::fmt::Display for ApiError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("busy at https://u:p@api.example/x?token=1\nnow")
    }
}

impl core::error::Error for ApiError {}

/// Returns what listeners of a call that fails twice, and then succeeds or gives up, print.
fn lines<E: core::fmt::Debug + Unpin + 'static>(api: Retrier, results: [Result<(), E>; 3]) -> Vec<String> {
    let (clock, lines) = (VirtualClock::new(), Arc::new(Mutex::new(Vec::new())));
    let (mut results, seen) = (results.into_iter(), Arc::clone(&lines));
    let api = api.on_event(move |event| seen.lock().unwrap().push(event.to_string()));
    let _ = api.blocking_call(|_| results.next().unwrap()).timer(&clock).run();
    lines.lock().unwrap().clone()
}

#[test]
fn an_event_prints_one_short_line() {
    let api = || Retrier::new(POLICY);
    assert_eq!(
        lines(api().named("api"), [Err("busy"), Err("busy"), Ok(())]),
        [
            "api: attempt 1/5 failed: busy; next in 10ms",
            "api: attempt 2/5 failed: busy; next in 10ms",
            "api: attempt 3/5 succeeded"
        ]
    );
    let io = || std::io::Error::other("down");
    assert_eq!(
        lines(api().classify(|_: &std::io::Error| Outcome::Permanent), [Err(io()), Ok(()), Ok(())]),
        ["attempt 1/5 failed: down; gave up, the failure is permanent"]
    );
    let policy = policy!(constant(ms(10)).jitter(Jitter::None).unlimited_attempts());
    let texts = [Err(String::from("no\u{1b}[2J")), Ok(()), Ok(())];
    let want = [r"attempt 1 failed: no\u{1b}[2J; next in 10ms", "attempt 2 succeeded"];
    assert_eq!(lines(Retrier::new(policy), texts), want);
}

#[test]
fn an_enum_of_ones_own_is_printed_by_its_text_once_its_type_is_known() {
    let first = |api: Retrier| lines(api, [Err(ApiError::Busy), Ok(()), Ok(())])[0].clone();
    let text = r"attempt 1/5 failed: busy at https://***@api.example/x?***\nnow; next in 10ms";
    assert_eq!(first(Retrier::new(POLICY).look_into::<ApiError>()), text);
    assert_eq!(first(Retrier::new(POLICY).classify(|_: &ApiError| Outcome::TRANSIENT)), text);
    assert_eq!(first(Retrier::new(POLICY)), "attempt 1/5 failed: Busy; next in 10ms");
}

#[test]
fn listeners_are_called_in_the_order_in_which_they_were_added() {
    let called = Arc::new(Mutex::new(Vec::new()));
    let retrier = [1, 2, 3].into_iter().fold(Retrier::new(POLICY), |retrier, number| {
        let called = Arc::clone(&called);
        retrier.on_event(move |_| called.lock().unwrap().push(number))
    });
    retrier.blocking(|| Ok::<_, Fail>(())).unwrap();
    assert_eq!(*called.lock().unwrap(), [1, 2, 3]);
}

#[test]
fn every_end_of_a_call_emits_an_event() {
    let ends = |policy: &Policy, outcome: Outcome, guard: Option<&dyn Guard>| {
        let recorder = Recorder::new();
        let clock = VirtualClock::new();
        let call = blocking::retry(policy, || Err::<(), _>(Fail(outcome))).timer(&clock).classify(Fail::outcome);
        let call = call.on_event(recorder.listener()).detailed();
        let error = match guard {
            Some(guard) => call.guard(guard).run().unwrap_err(),
            None => call.run().unwrap_err(),
        };
        let last = recorder.events().pop().unwrap();
        assert_eq!(last.action, Action::Stop(error.stop_reason()), "the event and the error agree");
        (last.attempt, error.stop_reason())
    };
    let (never, none) = (Outcome::throttled(Some(ServerHint::DoNotRetry)), None);
    let (empty, open, opens) =
        (RecordingBudget::new(1), RecordingBreaker::open(ms(1)), RecordingBreaker::new(2, ms(500)));
    let stop = Policy::stop().build().unwrap();
    let limited = POLICY.to_builder().base(ms(20)).max_elapsed(ms(20)).build().unwrap();
    assert_eq!(ends(&POLICY, Outcome::TRANSIENT, none), (5, StopReason::Attempts));
    assert_eq!(ends(&POLICY, Outcome::Permanent, none), (1, StopReason::Permanent));
    assert_eq!(ends(&POLICY, Outcome::Cancelled, none), (1, StopReason::Cancelled));
    assert_eq!(ends(&POLICY, never, none), (1, StopReason::Hint));
    assert_eq!(ends(&limited, Outcome::TRANSIENT, none), (2, StopReason::Elapsed));
    assert_eq!(ends(&stop, Outcome::TRANSIENT, none), (1, StopReason::Exhausted));
    assert_eq!(ends(&POLICY, Outcome::TRANSIENT, Some(&empty)), (2, StopReason::BUDGET));
    assert_eq!(ends(&POLICY, Outcome::TRANSIENT, Some(&open)), (0, StopReason::BREAKER));
    assert_eq!(ends(&POLICY, Outcome::TRANSIENT, Some(&opens)), (2, StopReason::BREAKER));
}

#[test]
fn an_event_precedes_its_sleep() {
    let (clock, seen) = (VirtualClock::new(), Mutex::new(Vec::new()));
    let call = retry_with_timer(&POLICY, &clock, async || Err::<(), _>("no"));
    block_on(call.on_event(|_| seen.lock().unwrap().push(clock.elapsed()))).unwrap_err();
    assert_eq!(seen.into_inner().unwrap(), [0, 10, 20, 30, 40].map(ms));
}

#[test]
fn an_event_carries_the_typed_error() {
    let seen = Mutex::new(Vec::new());
    let call = blocking::retry(&POLICY, || Err::<(), _>(Fail::TRANSIENT)).timer(NoSleep);
    call.on_event(|event| {
        assert_eq!(event.error_as::<String>(), None);
        seen.lock().unwrap().push(event.error_as::<Fail>().copied());
    })
    .run()
    .unwrap_err();
    assert_eq!(seen.into_inner().unwrap(), [Some(Fail::TRANSIENT); 5]);
}

#[test]
fn a_first_attempt_success_emits_an_event() {
    let recorder = Recorder::new();
    blocking::retry(&POLICY, || Ok::<_, Fail>(())).on_event(recorder.listener()).run().unwrap();
    assert_eq!(recorder.events().iter().map(|event| event.action).collect::<Vec<_>>(), [Action::Done]);
}

#[test]
fn all_listeners_of_a_retrier_receive_all_events() {
    let (first, second) = (Recorder::new(), Recorder::new());
    let retrier = Retrier::new(POLICY).named("payments").on_event(first.listener()).on_event(second.listener());
    let clone = retrier.clone();
    retrier.blocking_call(|_| Err::<(), _>("text")).timer(NoSleep).run().unwrap_err();
    block_on(clone.run_on(NoSleep, async || Err::<(), _>(Fail::TRANSIENT))).unwrap_err();
    assert_eq!(first.events(), second.events());
    let events = first.events();
    assert_eq!(events.len(), 10);
    assert!(events.iter().all(|event| event.target == "payments"), "{events:?}");
    assert_eq!(
        (events[0].error.as_deref(), events[9].error.as_deref()),
        (Some("\"text\""), Some(&*format!("{:?}", Fail::TRANSIENT)))
    );
}

/// A listener runs outside the attempt scope, so it may even call through the same retrier.
#[test]
fn a_listener_runs_outside_the_attempt_scope() {
    let depths = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&depths);
    let retrier = Retrier::new(POLICY).on_event(move |_| recorded.lock().unwrap().push(stagger::scope::depth()));
    retrier.blocking_call(|_| Err::<(), _>("no")).timer(NoSleep).run().unwrap_err();
    block_on(retrier.run_on(NoSleep, async || Err::<(), _>("no"))).unwrap_err();
    assert_eq!(*depths.lock().unwrap(), [0; 10]);
}
