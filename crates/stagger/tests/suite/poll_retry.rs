//! The call that is driven by polls. That it decides as the others do, the parity test shows.

use core::future::{pending, poll_fn};
use core::time::Duration;
use std::sync::Arc;

use stagger::budget::{Concurrent, Tokens};
use stagger::{
    Budget, FailureKind, Marked, Outcome, Policy, PollRetry, Retrier, ServerHint, StopReason, blocking, policy, scope,
    time::Clock as _, time::Tokio,
};
use tokio::time::{Instant, timeout};

use super::support::ms;

const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(3));

async fn begin(call: &mut PollRetry<Tokio>) -> stagger::Attempt {
    poll_fn(|cx| call.poll_begin(cx)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_the_spread_and_for_each_delay() {
    let policy = POLICY.to_builder().spread(Duration::from_secs(10)).build().unwrap();
    let (mut longest, start) = (Duration::ZERO, Instant::now());
    for seed in 0..20 {
        let before = start.elapsed();
        let mut call = PollRetry::new(&Retrier::new(policy).seed(stagger::Seed::new(seed)), Tokio);
        begin(&mut call).await;
        longest = longest.max(start.elapsed().saturating_sub(before));
        let failed_at = Instant::now();
        assert_eq!(call.failed::<()>(Outcome::TRANSIENT, None), None);
        assert_eq!(begin(&mut call).await.number, 2);
        assert_eq!(failed_at.elapsed(), ms(100));
    }
    assert!(longest > Duration::from_secs(8) && longest <= Duration::from_secs(10) + ms(1), "{longest:?}");
}

/// A wait that the server asked for is not undercut by a timer that is early.
#[tokio::test(start_paused = true)]
async fn it_holds_what_a_hint_has_asked_for() {
    let mut call = PollRetry::new(&Retrier::new(POLICY), Tokio);
    begin(&mut call).await;
    let start = Instant::now();
    let hint = Some(ServerHint::AtLeast(Duration::from_secs(2)));
    assert_eq!(call.failed::<()>(Outcome::Failed { kind: FailureKind::Throttled, hint }, None), None);
    begin(&mut call).await;
    assert!(start.elapsed() >= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_has_a_limit_that_begins_with_it() {
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
            assert_eq!(stop, StopReason::Elapsed);
            break;
        }
    }
    // At 0 ms and at 130 ms; what is left of the deadline then is 20 ms.
    assert_eq!(limits.len(), 2);
    for ((told, took), want) in limits.into_iter().zip([30, 20]) {
        assert!(told.abs_diff(ms(want)) <= ms(1) && took >= told && took <= told + ms(1), "{told:?} {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_there_is_nothing_to_wait_for() {
    let mut call = PollRetry::new(&Retrier::new(POLICY), Tokio);
    assert_eq!(begin(&mut call).await.time_limit, None);
    assert!(timeout(Duration::from_secs(60), poll_fn(|cx| call.poll_limit(cx))).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_point_it_gives_back_what_it_borrowed() {
    let (tokens, places) = (Arc::new(Tokens::new()), Arc::new(Concurrent::new()));
    let budgets: [Arc<dyn Budget>; 2] = [tokens.clone(), places.clone()];
    let mut paid = 0;
    for steps in 0..=6 {
        for budget in &budgets {
            let retrier = Retrier::new(POLICY).shared_budget(Arc::clone(budget));
            let mut call = PollRetry::new(&retrier, Tokio);
            for step in 0..steps {
                match step % 3 {
                    0 => assert_eq!(begin(&mut call).await.number, 1 + step / 3),
                    1 => call.attempt(|| ()),
                    _ => assert_eq!(call.failed::<()>(Outcome::TRANSIENT, None), None),
                }
            }
            if steps % 3 == 0 && steps > 0 {
                // In its sleep.
                assert!(timeout(ms(0), poll_fn(|cx| call.poll_begin(cx))).await.is_err());
            }
        }
        // What was made stays paid, and the first attempt costs nothing.
        paid += if steps >= 5 { 5 } else { 0 };
        assert_eq!(tokens.snapshot().tokens, 500 - paid, "after {steps} steps");
        assert_eq!((places.snapshot().firsts, places.snapshot().retries), (0, 0), "after {steps} steps");
    }
}

#[tokio::test(start_paused = true)]
async fn it_marks_its_attempts_and_heeds_the_mark() {
    let mut call = PollRetry::new(&Retrier::new(POLICY), Tokio);
    begin(&mut call).await;
    assert_eq!((call.attempt(scope::depth), scope::depth()), (1, 0));
    let stop = blocking::retry(&POLICY, || {
        let mut call = PollRetry::new(&Retrier::new(POLICY), Tokio);
        futures_lite::future::block_on(begin(&mut call));
        Ok::<_, ()>(call.failed::<()>(Outcome::TRANSIENT, None))
    });
    assert_eq!(stop.run(), Ok(Some(StopReason::Nested)));
}

#[tokio::test(start_paused = true)]
async fn after_its_end_it_is_pending() {
    let mut call = PollRetry::new(&Retrier::new(POLICY), Tokio);
    begin(&mut call).await;
    call.succeeded();
    assert!(timeout(Duration::from_secs(60), poll_fn(|cx| call.poll_begin(cx))).await.is_err());
    assert_eq!(call.attempts(), 1);
}

/// What it says of an error is what the retrier's rules say.
#[test]
fn errors_are_judged_by_the_rules_of_the_retrier() {
    let call = PollRetry::new(&Retrier::new(POLICY).when(|error: &u8| *error > 5), Tokio);
    assert_eq!([4, 6_u8].map(|error| call.outcome(&error)), [Outcome::Permanent, Outcome::TRANSIENT]);
    assert_eq!(call.outcome(&std::io::Error::from(std::io::ErrorKind::NotFound)), Outcome::Permanent);
    assert_eq!(call.outcome(&Marked::permanent("not of a known type")), Outcome::TRANSIENT);
}

/// Attempts that are ready at once, without delays, let other tasks run in between.
#[tokio::test(start_paused = true)]
async fn without_delays_it_takes_turns() {
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
