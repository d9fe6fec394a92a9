//! What an error means: rules, marks, checks, and what is done without any of them.

use core::cell::Cell;
use std::io::{self, ErrorKind};

use futures_lite::future::block_on;
use stagger::testing::{NoSleep, Recorder, Script, VirtualClock};
use stagger::{
    BreakerOpen, DelaySource, FailureKind, Marked, Outcome, Policy, Rejected, ServerHint, StopReason, blocking,
    observe::Action, policy, retry_with_timer,
};

use super::support::{Fail, ms};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));

#[derive(Clone, Copy, Debug, PartialEq)]
enum Api {
    Busy,
    Gone,
}

#[test]
fn a_predicate_says_what_is_transient_and_everything_else_is_permanent() {
    let attempts = |with| {
        let call = blocking::retry(&POLICY, || Err::<(), _>(with)).timer(NoSleep);
        let error = call.when(|error| *error == Api::Busy).detailed().run().unwrap_err();
        (error.stop_reason(), error.attempts())
    };
    assert_eq!(attempts(Api::Busy), (StopReason::Attempts, 3));
    assert_eq!(attempts(Api::Gone), (StopReason::Permanent, 1));
}

#[test]
fn a_rule_can_say_everything() {
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
    assert_eq!(wait(Outcome::Success), (StopReason::Permanent, ms(0)), "there is an error after all");
}

#[test]
fn an_error_that_a_rule_takes_for_success_is_not_told_as_a_success() {
    let recorder = Recorder::new();
    let call = blocking::retry(&POLICY, || Err::<(), _>("no")).classify(|_| Outcome::Success);
    call.on_event(recorder.listener()).run().unwrap_err();
    assert_eq!(recorder.events()[0].action, Action::Stop(StopReason::Permanent));
}

#[test]
fn every_mark_means_what_it_says() {
    let wait = |fault: Marked<&'static str>| {
        let (clock, recorder) = (VirtualClock::new(), Recorder::new());
        let policy = POLICY.to_builder().hint_spread(stagger::Ratio::ZERO).max_attempts(2).build().unwrap();
        let call = blocking::retry(&policy, move || Err::<(), _>(fault)).with_marks().timer(&clock);
        // The marks go before the rule.
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
    let (action, waited) = wait(Marked::retry_after("no", ms(40)));
    assert!(waited >= ms(40) && waited <= ms(50), "a floor, with the schedule's own ceiling on top: {waited:?}");
    assert_eq!(action, retry(waited, DelaySource::Hint));
    // Once at once, then like any transient failure.
    assert_eq!(wait(Marked::not_processed("no")), (retry(ms(0), DelaySource::Transparent), ms(10)));
    assert_eq!(wait(Marked::with_outcome("no", Outcome::Cancelled)), (Action::Stop(StopReason::Cancelled), ms(0)));
}

/// `?` makes a fault without a mark, for which the rule decides.
#[test]
fn an_unmarked_fault_is_judged_by_the_rule() {
    let calls = Cell::new(0);
    let operation = || -> Result<(), Marked<io::Error>> {
        calls.set(calls.get() + 1);
        Err(io::Error::from(if calls.get() < 3 { ErrorKind::ConnectionReset } else { ErrorKind::NotFound }))?;
        Ok(())
    };
    let policy = POLICY.to_builder().max_attempts(9).build().unwrap();
    let error = blocking::retry(&policy, operation).with_marks().timer(NoSleep).detailed().run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Permanent, 3));
    assert_eq!(error.error().map(io::Error::kind), Some(ErrorKind::NotFound));
}

#[test]
fn a_value_that_the_check_refuses_is_a_failure_like_any_other() {
    let mut script = Script::new([Ok("busy"), Err(String::from("reset")), Ok("done")]);
    let check = |value: &'static str| if value == "busy" { Err(String::from("not ready")) } else { Ok(value.len()) };
    let recorder = Recorder::new();
    let call = blocking::retry(&POLICY, || script.next(String::new())).timer(NoSleep).validate(check);
    assert_eq!(call.on_event(recorder.listener()).run(), Ok(4), "the check can make another value of it");
    let errors: Vec<_> = recorder.events().into_iter().map(|event| event.error).collect();
    assert_eq!(errors, [Some(String::from("\"not ready\"")), Some(String::from("\"reset\"")), None]);

    let call = retry_with_timer(&POLICY, NoSleep, async || Ok::<_, Fail>(0)).validate(|value| match value {
        0 => Err(Fail::TRANSIENT),
        value => Ok(value),
    });
    assert_eq!(block_on(call), Err(Fail::TRANSIENT), "never a bad value that looks like a good one");
}

#[test]
fn checks_follow_each_other_and_the_rule_judges_what_they_say() {
    let calls = Cell::new(0);
    let operation = || {
        calls.set(calls.get() + 1);
        Ok::<u32, Marked<Fail>>(calls.get())
    };
    let call = blocking::retry(&POLICY, operation).with_marks().timer(NoSleep);
    let call = call.validate(|value| if value < 2 { Err(Fail::TRANSIENT) } else { Ok(value * 10) });
    let call = call.validate(|value| if value < 30 { Err(Fail(Outcome::Permanent)) } else { Ok(value) });
    assert_eq!(call.classify(Fail::outcome).run(), Err(Fail(Outcome::Permanent)));
    assert_eq!(calls.get(), 2);
}

#[test]
fn without_a_rule_the_kind_of_an_io_error_decides_and_everything_else_is_transient() {
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

/// A layer inside that is refused by its own breaker costs no attempt at full speed: the layer outside waits for it.
#[test]
fn the_refusal_of_a_breaker_inside_is_waited_for() {
    let clock = VirtualClock::new();
    let refused = || Err::<(), _>(Rejected::BreakerOpen(BreakerOpen { retry_in: ms(500) }));
    let error = blocking::retry(&POLICY, refused).timer(&clock).detailed().run().unwrap_err();
    assert_eq!(error.attempts(), 3);
    assert!(clock.elapsed() >= ms(1_000), "{:?}", clock.elapsed());
}
