//! Classification of errors: classifiers, marks, validation, and the defaults without them.

use core::cell::Cell;
use std::io::{self, ErrorKind};

use futures_lite::future::block_on;
use stagger::observe::Action;
use stagger::testing::{NoSleep, Recorder, Script, VirtualClock};
use stagger::{
    DelaySource, FailureKind, Marked, Outcome, Policy, Rejected, ServerHint, StopReason, blocking, policy,
    retry_with_timer,
};

use super::support::{Fail, ms};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));

#[derive(Clone, Copy, Debug, PartialEq)]
enum Api {
    Busy,
    Gone,
}

#[test]
fn errors_not_matching_the_predicate_are_permanent() {
    let attempts = |with| {
        let call = blocking::retry(&POLICY, || Err::<(), _>(with)).timer(NoSleep);
        let error = call.when(|error| *error == Api::Busy).detailed().run().unwrap_err();
        (error.stop_reason(), error.attempts())
    };
    assert_eq!(attempts(Api::Busy), (StopReason::Attempts, 3));
    assert_eq!(attempts(Api::Gone), (StopReason::Permanent, 1));
}

#[test]
fn a_classifier_can_return_every_outcome() {
    let wait = |outcome| {
        let clock = VirtualClock::new();
        let policy = POLICY.to_builder().throttled_base(ms(30)).local_base(ms(50)).max_attempts(2).build().unwrap();
        let call = blocking::retry(&policy, || Err::<(), _>("no")).timer(&clock).classify(move |_| outcome);
        (call.detailed().run().unwrap_err().stop_reason(), clock.elapsed())
    };
    let failed = |kind, hint| Outcome::Failed { kind, hint };
    assert_eq!(wait(Outcome::TRANSIENT), (StopReason::Attempts, ms(10)));
    assert_eq!(wait(Outcome::throttled(None)), (StopReason::Attempts, ms(30)));
    assert_eq!(wait(failed(FailureKind::LocalExhaustion, None)), (StopReason::Attempts, ms(50)));
    assert_eq!(
        wait(failed(FailureKind::Transient, Some(ServerHint::Reserved(ms(70))))),
        (StopReason::Attempts, ms(70))
    );
    assert_eq!(wait(failed(FailureKind::Transient, Some(ServerHint::DoNotRetry))), (StopReason::Hint, ms(0)));
    assert_eq!(wait(Outcome::Permanent), (StopReason::Permanent, ms(0)));
    assert_eq!(wait(Outcome::Cancelled), (StopReason::Cancelled, ms(0)));
    assert_eq!(wait(Outcome::Success), (StopReason::Permanent, ms(0)), "an error is never a success");
}

#[test]
fn an_error_classified_as_success_is_reported_as_permanent() {
    let recorder = Recorder::new();
    let call = blocking::retry(&POLICY, || Err::<(), _>("no")).classify(|_| Outcome::Success);
    call.on_event(recorder.listener()).run().unwrap_err();
    assert_eq!(recorder.events()[0].action, Action::Stop(StopReason::Permanent));
}

#[test]
fn every_mark_maps_to_its_outcome() {
    let wait = |marked: Marked<&'static str>| {
        let (clock, recorder) = (VirtualClock::new(), Recorder::new());
        let policy = POLICY.to_builder().hint_spread(stagger::Ratio::ZERO).max_attempts(2).build().unwrap();
        let call = blocking::retry(&policy, move || Err::<(), _>(marked)).timer(&clock);
        // Marks take precedence over the predicate.
        let error = call.when(|_| false).on_event(recorder.listener()).detailed().run().unwrap_err();
        assert_eq!(error.error(), Some(&"no"), "the original error, without its mark");
        (recorder.events()[0].action, clock.elapsed())
    };
    let retry = |after, source| Action::Retry { after, source };
    assert_eq!(wait(Marked::permanent("no")), (Action::Stop(StopReason::Permanent), ms(0)));
    assert_eq!(wait(Marked::unsafe_to_retry("no")), (Action::Stop(StopReason::UnsafeToRetry), ms(0)));
    assert_eq!(wait(Marked::transient("no")), (retry(ms(10), DelaySource::Schedule), ms(10)));
    assert_eq!(wait(Marked::throttled("no", None)), (retry(ms(10), DelaySource::Schedule), ms(10)));
    assert_eq!(
        wait(Marked::throttled("no", Some(ServerHint::Reserved(ms(3))))),
        (retry(ms(3), DelaySource::Hint), ms(3))
    );
    assert_eq!(wait(Marked::local_exhaustion("no")), (retry(ms(100), DelaySource::Schedule), ms(100)));
    let (action, elapsed) = wait(Marked::retry_after("no", ms(40)));
    assert!(
        elapsed >= ms(40) && elapsed <= ms(50),
        "from the hint to the hint plus the ceiling of the schedule: {elapsed:?}"
    );
    assert_eq!(action, retry(elapsed, DelaySource::Hint));
    // The first time without a delay, then as a transient failure.
    assert_eq!(wait(Marked::not_processed("no")), (retry(ms(0), DelaySource::Transparent), ms(10)));
    assert_eq!(wait(Marked::with_outcome("no", Outcome::Cancelled)), (Action::Stop(StopReason::Cancelled), ms(0)));
}

/// `?` creates an unmarked error, which the default rule classifies.
#[test]
fn an_unmarked_error_is_classified_by_the_default_rule() {
    let calls = Cell::new(0);
    let operation = || -> Result<(), Marked<io::Error>> {
        calls.set(calls.get() + 1);
        Err(io::Error::from(if calls.get() < 3 { ErrorKind::ConnectionReset } else { ErrorKind::NotFound }))?;
        Ok(())
    };
    let policy = POLICY.to_builder().max_attempts(9).build().unwrap();
    let error = blocking::retry(&policy, operation).timer(NoSleep).detailed().run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Permanent, 3));
    assert_eq!(error.error().map(io::Error::kind), Some(ErrorKind::NotFound));
}

#[test]
fn a_value_that_fails_validation_is_retried() {
    let mut script = Script::new([Ok("busy"), Err(String::from("reset")), Ok("done")]);
    let check = |value: &'static str| if value == "busy" { Err(String::from("not ready")) } else { Ok(value.len()) };
    let recorder = Recorder::new();
    let call = blocking::retry(&POLICY, || script.next(String::new())).timer(NoSleep).validate(check);
    assert_eq!(call.on_event(recorder.listener()).run(), Ok(4), "validation may change the value");
    let errors: Vec<_> = recorder.events().into_iter().map(|event| event.error).collect();
    assert_eq!(errors, [Some(String::from("\"not ready\"")), Some(String::from("\"reset\"")), None]);

    let call = retry_with_timer(&POLICY, NoSleep, async || Ok::<_, Fail>(0)).validate(|value| match value {
        0 => Err(Fail::TRANSIENT),
        value => Ok(value),
    });
    assert_eq!(block_on(call), Err(Fail::TRANSIENT), "an invalid value is an error");
}

#[test]
fn validators_chain_and_their_errors_are_classified() {
    let calls = Cell::new(0);
    let operation = || {
        calls.set(calls.get() + 1);
        Ok::<u32, Marked<Fail>>(calls.get())
    };
    let call = blocking::retry(&POLICY, operation).timer(NoSleep);
    let call = call.validate(|value| if value < 2 { Err(Fail::TRANSIENT) } else { Ok(value * 10) });
    let call = call.validate(|value| if value < 30 { Err(Fail(Outcome::Permanent)) } else { Ok(value) });
    assert_eq!(call.classify(Fail::outcome).run(), Err(Fail(Outcome::Permanent)));
    assert_eq!(calls.get(), 2);
}

#[test]
fn by_default_io_error_kinds_decide_and_others_are_transient() {
    let attempts = |kind: ErrorKind| {
        let fails = || Err::<(), _>(io::Error::from(kind));
        blocking::retry(&POLICY, fails).timer(NoSleep).detailed().run().unwrap_err().attempts()
    };
    assert_eq!([attempts(ErrorKind::ConnectionRefused), attempts(ErrorKind::PermissionDenied)], [3, 1]);
    let boxed = || Err::<(), Box<dyn core::error::Error + Send + Sync>>(io::Error::from(ErrorKind::NotFound).into());
    assert_eq!(blocking::retry(&POLICY, boxed).timer(NoSleep).detailed().run().unwrap_err().attempts(), 1);
    let text = || Err::<(), _>("anything");
    assert_eq!(blocking::retry(&POLICY, text).timer(NoSleep).detailed().run().unwrap_err().attempts(), 3);
}

/// The outer call waits until the breaker of the inner call admits again, instead of using up its attempts at once.
#[test]
fn the_rejection_of_an_inner_breaker_is_waited_for() {
    let clock = VirtualClock::new();
    let rejected = || Err::<(), _>(Rejected::ByGuard { guard: "breaker", retry_in: ms(500) });
    let error = blocking::retry(&POLICY, rejected).timer(&clock).detailed().run().unwrap_err();
    assert_eq!(error.attempts(), 3);
    assert!(clock.elapsed() >= ms(1_000), "{:?}", clock.elapsed());
}
