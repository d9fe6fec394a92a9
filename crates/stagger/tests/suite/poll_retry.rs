//! [`PollRetry`]. The parity tests check that it makes the same decisions as the other drivers.

use core::future::{pending, poll_fn};
use core::time::Duration;
use std::sync::Arc;

use futures_lite::future::block_on;
use stagger::breaker::CircuitBreaker;
use stagger::budget::{Concurrent, ControlMode, Tokens};
use stagger::control::RetryControls;
use stagger::testing::NoSleep;
use stagger::time::{Clock as _, Tokio};
use stagger::{
    Attempt, FailureKind, Guard, Marked, Outcome, Policy, PollRetry, Rejected, Retrier, Seed, ServerHint, StopReason,
    blocking, policy, scope,
};
use tokio::time::{Instant, timeout};

use super::support::ms;

const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(3));

async fn begin(call: &mut PollRetry<Tokio>) -> Attempt {
    poll_fn(|cx| call.poll_begin(cx)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn poll_begin_waits_for_the_spread_and_each_delay() {
    let policy = POLICY.to_builder().spread(Duration::from_secs(10)).build().unwrap();
    let (mut longest, start) = (Duration::ZERO, Instant::now());
    for seed in 0..20 {
        let before = start.elapsed();
        let mut call = PollRetry::new(&Retrier::new(policy).seed(Seed::new(seed)), Tokio);
        begin(&mut call).await;
        longest = longest.max(start.elapsed().saturating_sub(before));
        let failed_at = Instant::now();
        assert_eq!(call.failed::<()>(Outcome::TRANSIENT, None), None);
        assert_eq!(begin(&mut call).await.number, 2);
        assert_eq!(failed_at.elapsed(), ms(100));
    }
    assert!(longest > Duration::from_secs(8) && longest <= Duration::from_secs(10) + ms(1), "{longest:?}");
}

/// The wait must not be shorter than the hint even if a timer fires early.
#[tokio::test(start_paused = true)]
async fn poll_begin_waits_at_least_as_long_as_a_hint() {
    let mut call = PollRetry::new(&Retrier::new(POLICY), Tokio);
    begin(&mut call).await;
    let start = Instant::now();
    let hint = Some(ServerHint::AtLeast(Duration::from_secs(2)));
    assert_eq!(call.failed::<()>(Outcome::Failed { kind: FailureKind::Throttled, hint }, None), None);
    begin(&mut call).await;
    assert!(start.elapsed() >= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_of_an_attempt_starts_with_it() {
    let retrier = Retrier::new(POLICY).timeout(ms(30));
    let deadline = Tokio.now().saturating_add(ms(150));
    let mut call = PollRetry::with_deadline(&retrier, Tokio, Some(deadline));
    let mut limits = Vec::new();
    loop {
        let attempt = begin(&mut call).await;
        let start = Instant::now();
        poll_fn(|cx| call.poll_limit(cx)).await;
        limits.push((attempt.time_limit.unwrap(), start.elapsed()));
        if let Some(stop) = call.failed::<()>(Outcome::TRANSIENT, None) {
            assert_eq!(stop, StopReason::Deadline);
            break;
        }
    }
    // Attempts start at 0 ms and at 130 ms; 20 ms remain until the deadline then.
    assert_eq!(limits.len(), 2);
    for ((limit, took), want) in limits.into_iter().zip([30, 20]) {
        assert!(limit.abs_diff(ms(want)) <= ms(1) && took >= limit && took <= limit + ms(1), "{limit:?} {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn poll_limit_stays_pending_without_a_time_limit() {
    let mut call = PollRetry::new(&Retrier::new(POLICY), Tokio);
    assert_eq!(begin(&mut call).await.time_limit, None);
    assert!(timeout(Duration::from_secs(60), poll_fn(|cx| call.poll_limit(cx))).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn dropping_at_any_point_releases_the_permits() {
    let (tokens, concurrent) = (Arc::new(Tokens::new()), Arc::new(Concurrent::new()));
    let budgets: [Arc<dyn Guard>; 2] = [tokens.clone(), concurrent.clone()];
    let mut charged = 0;
    for steps in 0..=6 {
        for budget in &budgets {
            let retrier = Retrier::new(POLICY).shared_guard(Arc::clone(budget));
            let mut call = PollRetry::new(&retrier, Tokio);
            for step in 0..steps {
                match step % 3 {
                    0 => assert_eq!(begin(&mut call).await.number, 1 + step / 3),
                    1 => call.attempt(|| ()),
                    _ => assert_eq!(call.failed::<()>(Outcome::TRANSIENT, None), None),
                }
            }
            if steps % 3 == 0 && steps > 0 {
                // Dropped while sleeping.
                assert!(timeout(ms(0), poll_fn(|cx| call.poll_begin(cx))).await.is_err());
            }
        }
        // A retry that has begun stays charged; the first attempt is free.
        charged += if steps >= 5 { 5 } else { 0 };
        assert_eq!(tokens.snapshot().tokens, 500 - charged, "after {steps} steps");
        assert_eq!((concurrent.snapshot().firsts, concurrent.snapshot().retries), (0, 0), "after {steps} steps");
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_set_and_check_the_nesting_depth() {
    let mut call = PollRetry::new(&Retrier::new(POLICY), Tokio);
    begin(&mut call).await;
    assert_eq!((call.attempt(scope::depth), scope::depth()), (1, 0));
    let stop = blocking::retry(&POLICY, || {
        let mut call = PollRetry::new(&Retrier::new(POLICY), Tokio);
        block_on(begin(&mut call));
        Ok::<_, ()>(call.failed::<()>(Outcome::TRANSIENT, None))
    });
    assert_eq!(stop.run(), Ok(Some(StopReason::Nested)));
}

#[tokio::test(start_paused = true)]
async fn poll_begin_is_pending_after_completion() {
    let mut call = PollRetry::new(&Retrier::new(POLICY), Tokio);
    begin(&mut call).await;
    call.succeeded();
    assert!(timeout(Duration::from_secs(60), poll_fn(|cx| call.poll_begin(cx))).await.is_err());
    assert_eq!(call.attempts(), 1);
}

#[test]
fn outcome_applies_the_rules_of_the_retrier() {
    let rule = |error: &u8| if *error > 5 { Outcome::TRANSIENT } else { Outcome::Permanent };
    let call = PollRetry::new(&Retrier::new(POLICY).classify_exactly(rule), Tokio);
    assert_eq!([4, 6_u8].map(|error| call.outcome(&error)), [Outcome::Permanent, Outcome::TRANSIENT]);
    assert_eq!(call.outcome(&std::io::Error::from(std::io::ErrorKind::NotFound)), Outcome::Permanent);
    assert_eq!(call.outcome(&Marked::permanent("not of a known type")), Outcome::Permanent);
    assert_eq!(call.explicit_outcome(&Marked::permanent("not of a known type")), Some(Outcome::Permanent));
    assert_eq!(call.explicit_outcome(&"not of a known type"), None);
}

/// Attempts that are ready at once must not starve other tasks.
#[tokio::test(start_paused = true)]
async fn attempts_without_delays_yield_to_other_tasks() {
    let policy = Policy::zero().max_attempts(1000).build().unwrap();
    let mut call = PollRetry::new(&Retrier::new(policy), Tokio);
    let others = core::cell::Cell::new(0);
    let retrying = async {
        loop {
            begin(&mut call).await;
            if call.failed::<()>(Outcome::TRANSIENT, None).is_some() {
                break;
            }
        }
    };
    let counting = async {
        loop {
            others.set(others.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = retrying => {}
        () = counting => {}
        () = pending() => {}
    }
    assert!(others.get() >= 10, "{}", others.get());
}

/// Makes a call to this target that fails until it stops, and returns why and after how many attempts.
fn fails_to(retrier: &Retrier, target: &str) -> (StopReason, u32) {
    let mut call = PollRetry::new(retrier, NoSleep).target(target);
    loop {
        if begin_at_once(&mut call).is_err() {
            return (StopReason::BREAKER, call.attempts());
        }
        if let Some(stop) = call.failed::<()>(Outcome::TRANSIENT, None) {
            return (stop, call.attempts());
        }
    }
}

fn begin_at_once(call: &mut PollRetry<NoSleep>) -> Result<Attempt, Rejected> {
    block_on(poll_fn(|cx| call.poll_begin(cx)))
}

#[test]
fn each_target_has_guards_of_its_own_with_the_settings_of_the_retrier() {
    let budget = Tokens::builder().capacity(10).cost(5).build().unwrap();
    let retrier = Retrier::new(POLICY).budget(budget);
    // Two retries each; after that, none.
    assert_eq!(fails_to(&retrier, "a"), (StopReason::Attempts, 3));
    assert_eq!(fails_to(&retrier, "a"), (StopReason::BUDGET, 1));
    assert_eq!(fails_to(&retrier.clone(), "b"), (StopReason::Attempts, 3));
    assert_eq!(fails_to(&retrier.clone(), "b"), (StopReason::BUDGET, 1));

    let breaker = CircuitBreaker::builder(Seed::new(1)).consecutive(3).build().unwrap();
    let retrier = Retrier::new(POLICY).breaker(breaker);
    for target in ["a", "b"] {
        assert_eq!(fails_to(&retrier, target).1, 3);
        assert_eq!(fails_to(&retrier, target), (StopReason::BREAKER, 0));
    }
}

#[test]
fn shared_guards_serve_all_targets() {
    let budget = Arc::new(Tokens::builder().capacity(10).cost(5).build().unwrap());
    let retrier = Retrier::new(POLICY).shared_guard(budget);
    assert_eq!(fails_to(&retrier, "a"), (StopReason::Attempts, 3));
    assert_eq!(fails_to(&retrier, "b"), (StopReason::BUDGET, 1));
    let breaker = Arc::new(CircuitBreaker::builder(Seed::new(1)).consecutive(3).build().unwrap());
    let retrier = Retrier::new(POLICY).budget(Tokens::new()).shared_guard(breaker);
    assert_eq!(fails_to(&retrier, "a").1, 3);
    assert_eq!(fails_to(&retrier, "b"), (StopReason::BREAKER, 0));
}

#[test]
fn the_guards_of_targets_obey_the_operator_controls_of_the_retrier() {
    let breaker = || CircuitBreaker::builder(Seed::new(1)).consecutive(3).build().unwrap();
    let controls = RetryControls::new();
    let retrier = Retrier::new(POLICY).budget(Tokens::new()).breaker(breaker()).controls(&controls).named("api");
    assert_eq!(fails_to(&retrier, "a").1, 3);
    controls.set("api", ControlMode::Off);
    assert_eq!(fails_to(&retrier, "a"), (StopReason::Attempts, 3));
    controls.set("api", ControlMode::NoRetries);
    assert_eq!(fails_to(&retrier, "b"), (StopReason::CONTROL, 1));
}
