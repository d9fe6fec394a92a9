//! Settled meaning 6: what the elapsed-time limit counts, and when the clock is read.

use core::future::poll_fn;

use futures_lite::future::block_on;
use stagger::{Outcome, Policy, PollRetry, Retrier, ServerHint, StopReason, blocking, policy, retry_with_timer};

use super::support::{CountingClock, Fail, RecordingBudget, ms, nanos};

const UNTIMED: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));
const TIMED: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3).max_elapsed(secs(9)));

/// Returns an operation that fails `times` times, then succeeds.
fn failing(times: u32, with: Outcome) -> impl FnMut() -> Result<(), Fail> {
    let mut left = times;
    move || match left {
        0 => Ok(()),
        _ => {
            left -= 1;
            Err(Fail(with))
        }
    }
}

/// Returns the clock reads of a plain blocking call, a plain async call and a polled call.
fn reads(policy: &Policy, failures: u32, with: Outcome) -> [u32; 3] {
    let clock = CountingClock::default();
    blocking::retry(policy, failing(failures, with)).classify(Fail::outcome).timer(&clock).run().unwrap();
    let in_blocking = clock.reads();

    let clock = CountingClock::default();
    let mut operation = failing(failures, with);
    block_on(retry_with_timer(policy, &clock, || core::future::ready(operation())).classify(Fail::outcome)).unwrap();
    [in_blocking, clock.reads(), reads_when_polled(policy, failures, with)]
}

fn reads_when_polled(policy: &Policy, failures: u32, with: Outcome) -> u32 {
    let clock = CountingClock::default();
    let mut call = PollRetry::new(&Retrier::new(*policy), &clock).untimed();
    let mut operation = failing(failures, with);
    for n in 1..=failures + 1 {
        assert_eq!(block_on(poll_fn(|cx| call.poll_begin(cx))).unwrap().number, n);
        match operation() {
            Ok(()) => call.succeeded(),
            Err(error) => assert_eq!(call.failed(with, Some(&error)), None),
        }
    }
    assert_eq!(call.attempts(), failures + 1);
    clock.reads()
}

#[test]
fn meaning_06_an_untimed_call_does_not_read_the_clock() {
    assert_eq!(reads(&UNTIMED, 0, Outcome::TRANSIENT), [0; 3]);
    assert_eq!(reads(&UNTIMED, 2, Outcome::TRANSIENT), [0; 3]);
}

#[test]
fn meaning_06_a_limit_reads_the_clock_at_start_and_per_failure() {
    assert_eq!(reads(&TIMED, 0, Outcome::TRANSIENT), [1; 3]);
    assert_eq!(reads(&TIMED, 2, Outcome::TRANSIENT), [3; 3]);
}

#[test]
fn meaning_06_a_hint_reads_the_clock_before_and_after_its_sleep() {
    let hinted = Outcome::throttled(Some(ServerHint::Reserved(ms(5))));
    assert_eq!(reads(&UNTIMED, 1, hinted), [2; 3]);
}

#[test]
fn meaning_06_reports_and_listeners_read_the_clock_on_success() {
    let clock = CountingClock::default();
    let report = blocking::retry(&UNTIMED, failing(0, Outcome::TRANSIENT)).timer(&clock).with_report().run();
    assert_eq!((report.result, clock.reads()), (Ok(()), 2), "at the start and at the end");

    let clock = CountingClock::default();
    blocking::retry(&UNTIMED, failing(0, Outcome::TRANSIENT)).timer(&clock).on_event(|_| ()).run().unwrap();
    assert!(clock.reads() >= 2, "at the start and for the event");

    // A guard that does not read the clock adds only the read at the start, which the elapsed time of an error needs.
    let (clock, budget) = (CountingClock::default(), RecordingBudget::new(1));
    blocking::retry(&UNTIMED, failing(0, Outcome::TRANSIENT)).timer(&clock).guard(&budget).run().unwrap();
    assert_eq!(clock.reads(), 1);
}

#[test]
fn meaning_06_elapsed_includes_attempts_and_sleeps() {
    let clock = CountingClock::default();
    let slow = || {
        clock.advance(ms(100));
        Err::<(), _>("no")
    };
    let report = blocking::retry(&UNTIMED, slow).timer(&clock).with_report().run();
    assert_eq!((report.attempts, report.elapsed), (3, ms(320)));
    assert_eq!(report.result.unwrap_err().elapsed(), ms(320));
}

/// Attempts of 10 ms and delays of 10 ms: the third attempt would start at 40 ms.
#[test]
fn meaning_06_the_limit_is_strict_and_counts_the_next_sleep() {
    for (limit, attempts, stop) in [
        (ms(40) - nanos(1), 2, StopReason::Elapsed),
        (ms(40), 3, StopReason::Elapsed),
        (ms(59), 3, StopReason::Elapsed),
        (ms(60), 4, StopReason::Attempts),
    ] {
        let policy = UNTIMED.to_builder().max_attempts(4).max_elapsed(limit).build().unwrap();
        let clock = CountingClock::default();
        let slow = || {
            clock.advance(ms(10));
            Err::<(), _>("no")
        };
        let error = blocking::retry(&policy, slow).timer(&clock).detailed().run().unwrap_err();
        assert_eq!((error.attempts(), error.stop_reason()), (attempts, stop), "{limit:?}");
        // No sleep before the stop.
        assert_eq!(error.elapsed(), ms(10) * attempts + ms(10) * (attempts - 1), "{limit:?}");
    }
}

#[test]
fn meaning_06_a_limit_of_zero_is_not_unlimited() {
    const LIMIT_ZERO: Policy = policy!(zero().max_elapsed(ms(0)).max_attempts(3));
    let clock = CountingClock::default();
    let mut calls = 0;
    let mut operation = |takes: u64| {
        calls += 1;
        clock.advance(nanos(takes));
        Err::<(), _>("no")
    };
    let error = blocking::retry(&LIMIT_ZERO, || operation(1)).timer(&clock).detailed().run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Elapsed, 1));
    let error = blocking::retry(&LIMIT_ZERO, || operation(0)).timer(&clock).detailed().run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), calls), (StopReason::Attempts, 3, 4));
}
