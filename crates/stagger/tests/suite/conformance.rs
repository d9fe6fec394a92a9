//! Rows of the conformance table that count calls and therefore need a driver: tenacity (TN), Polly (PL), failsafe-go
//! (FG), resilience4j (R4), the AWS SDKs (AW), gRPC (GR) and budgets (BD). A test that deviates from its row on purpose
//! says why.

use core::cell::{Cell, RefCell};
use core::future::ready;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use futures_lite::future::block_on;
use stagger::budget::{Controlled, Lifetime, RetryControl, SuccessRate, Throttle, Tokens, Window};
use stagger::observe::Action;
use stagger::testing::{Script, VirtualClock};
use stagger::{Guard, Marked, Policy, Ratio, Retrier, StopReason, blocking, policy, profile, retry_with_timer};

use super::support::ms;

const FIVE: Policy = policy!(zero().max_attempts(5));

#[test]
fn tn_35_a_transient_mark_overrides_the_predicate() {
    let mut script = Script::new([Err(Marked::transient("again")), Err(Marked::transient("again")), Ok(3)]);
    let call = blocking::retry(&FIVE, || script.next(Marked::permanent("no more"))).when(|_| false).with_report().run();
    assert_eq!((call.attempts, call.result.unwrap()), (3, 3));
}

/// Retries while the calls succeed, until the expected error occurs.
#[test]
fn tn_37_a_success_can_be_retried() {
    let calls = Cell::new(0);
    let operation = || {
        calls.set(calls.get() + 1);
        Ok::<_, &str>(if calls.get() > 5 { Err("NameError") } else { Ok(()) })
    };
    let policy = policy!(zero().unlimited_attempts());
    let call = blocking::retry(&policy, operation)
        .validate(|result: Result<(), &str>| if result.is_err() { Ok(()) } else { Err("not yet") })
        .with_report()
        .run();
    assert_eq!((call.attempts, call.result), (6, Ok(())));
}

#[test]
fn tn_43_the_event_before_a_sleep_carries_its_length() {
    let policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));
    let delays = RefCell::new(Vec::new());
    let call = blocking::retry(&policy, || Err::<(), _>("no")).timer(VirtualClock::new()).on_event(|event| {
        if let Action::Retry { after, .. } = event.action {
            delays.borrow_mut().push(after);
        }
    });
    assert_eq!(call.run(), Err("no"));
    assert_eq!(delays.into_inner(), [ms(10); 2]);
}

#[test]
fn tn_45_the_original_error_is_returned() {
    let policy = policy!(zero().max_attempts(2));
    assert_eq!(blocking::retry(&policy, || Err::<(), _>("the original")).run(), Err("the original"));
}

#[test]
fn tn_47_disabled_retries_make_one_call_and_return_its_error() {
    let calls = Cell::new(0);
    let off = FIVE.to_builder().max_attempts(1).build().unwrap();
    let operation = || {
        calls.set(calls.get() + 1);
        Err::<(), _>("no")
    };
    assert_eq!(blocking::retry(&off, operation).run(), Err("no"));
    assert_eq!(calls.get(), 1);
}

/// Polly makes no call. Here the operation runs at least once, so that the caller always gets a result of its own.
#[test]
fn pl_25_a_call_cancelled_before_its_start_runs_once() {
    let calls = Cell::new(0);
    let operation = || {
        calls.set(calls.get() + 1);
        ready(Err::<(), _>("no"))
    };
    let call = block_on(retry_with_timer(&FIVE, VirtualClock::new(), operation).cancelled_by(ready(())));
    assert_eq!((calls.get(), call.unwrap_err().stop_reason()), (1, StopReason::Cancelled));
}

#[test]
fn pl_27_cancelling_during_a_failing_attempt_prevents_retries() {
    let (cancel, calls) = (stagger::Cancel::new(), Cell::new(0));
    let operation = || {
        calls.set(calls.get() + 1);
        cancel.cancel();
        Err::<(), _>("no")
    };
    let error = blocking::retry(&FIVE, operation).cancelled_by(&cancel).run().unwrap_err();
    assert_eq!((calls.get(), error.stop_reason()), (1, StopReason::Cancelled));
}

#[test]
fn fg_13_a_result_is_retried_until_it_is_valid() {
    let mut script = Script::new([Ok::<_, &str>(500), Ok(500), Ok(200)]);
    let policy = policy!(zero().unlimited_attempts());
    let call = blocking::retry(&policy, || script.next("no more"))
        .validate(|status| if status == 500 { Err("server error") } else { Ok(status) })
        .with_report()
        .run();
    assert_eq!((call.attempts, call.result), (3, Ok(200)));
}

/// failsafe-go makes 5 calls, and most libraries 9. Here the inner call does not retry: 3.
#[test]
fn fg_15_nested_retries_do_not_multiply() {
    let calls = Cell::new(0);
    let policy = profile::FAILSAFE_GO.policy();
    let inner = || {
        blocking::retry(&policy, || {
            calls.set(calls.get() + 1);
            Err::<(), _>("no")
        })
        .timer(VirtualClock::new())
        .run()
    };
    assert_eq!(blocking::retry(&policy, inner).timer(VirtualClock::new()).run(), Err("no"));
    assert_eq!(calls.get(), 3);
}

/// resilience4j returns the bad result as a success; here it is an error.
#[test]
fn r4_09_a_result_still_invalid_after_two_attempts_is_an_error() {
    let policy = policy!(zero().max_attempts(2));
    let call =
        blocking::retry(&policy, || Ok::<_, &str>("bad")).validate(|_| Err::<(), _>("bad result")).with_report().run();
    assert_eq!((call.attempts, call.stop_reason()), (2, Some(StopReason::Attempts)));
}

#[test]
fn aw_07_a_successful_response_can_be_retried() {
    let clock = VirtualClock::new();
    let policy = profile::AWS_SDK.policy().to_builder().jitter(stagger::Jitter::None).build().unwrap();
    let mut script = Script::new([Ok::<_, &str>("<Error>"), Ok("<Result>")]);
    let call = blocking::retry(&policy, || script.next("no more"))
        .validate(|body| if body == "<Error>" { Err("slow down") } else { Ok(body) })
        .timer(clock.clone())
        .run();
    assert_eq!((call, clock.elapsed()), (Ok("<Result>"), Duration::from_secs(1)));
}

#[test]
fn aw_27_one_attempt_is_one_call() {
    let policy = profile::AWS_SDK.policy().to_builder().max_attempts(1).build().unwrap();
    let call = blocking::retry(&policy, || Err::<(), _>("no")).with_report().run();
    assert_eq!((call.attempts, call.stop_reason()), (1, Some(StopReason::Attempts)));
    assert!(call.elapsed < Duration::from_secs(1));
}

/// The server never answers.
#[tokio::test(start_paused = true)]
async fn gr_13_up_to_four_copies_are_in_flight() {
    let hedge = stagger::hedge::Hedge::after(ms(500)).with_max_copies(3);
    let in_flight = Cell::new(0);
    let call = stagger::hedge::hedge(&hedge, || {
        in_flight.set(in_flight.get() + 1);
        core::future::pending::<Result<(), &str>>()
    });
    let mut call = core::pin::pin!(call);
    let mut seen = Vec::new();
    for wait in [1, 500, 500, 500, 500] {
        assert!(tokio::time::timeout(ms(wait), call.as_mut()).await.is_err());
        seen.push(in_flight.get());
    }
    assert_eq!(seen, [1, 2, 3, 4, 4]);
}

/// N failing calls with three retries each, on four threads.
#[test]
fn bd_17_threads_never_exceed_the_retry_budget() {
    const CALLS: u64 = 4 * 500;
    let fifth = Ratio::percent(20);
    let window = Window::builder().ratio(fifth).min_per_second(0).ttl(ms(60_000)).build().unwrap();
    let budgets: [(Arc<dyn Guard>, core::ops::RangeInclusive<u64>); 6] = [
        (Arc::new(Tokens::new()), 100..=100),
        (Arc::new(Controlled::new(Arc::new(Tokens::new()), RetryControl::new())), 100..=100),
        (Arc::new(window), 1..=fifth.of(CALLS)),
        (Arc::new(Lifetime::with(fifth, 0).unwrap()), 1..=CALLS / 4),
        (Arc::new(Throttle::new(100, Ratio::percent(10)).unwrap()), 1..=49),
        (Arc::new(SuccessRate::new()), 1..=5),
    ];
    for (budget, want) in budgets {
        let policy = policy!(zero().max_attempts(4));
        let (attempts, api) = (AtomicU64::new(0), Retrier::new(policy).shared_guard(Arc::clone(&budget)));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..CALLS / 4 {
                        let fail = || {
                            attempts.fetch_add(1, Ordering::Relaxed);
                            Err::<(), _>("no")
                        };
                        api.blocking(fail).unwrap_err();
                    }
                });
            }
        });
        let retries = attempts.into_inner() - CALLS;
        assert!(want.contains(&retries), "{retries} retries, want {want:?}: {budget:?}");
    }
}
