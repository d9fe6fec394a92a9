//! A [`Pacer`] under the drivers: calls wait for their turn within their limits, or are rejected at once.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::Arc;

use stagger::budget::{ControlMode, Tokens};
use stagger::control::RetryControls;
use stagger::guard::{Pacer, PacerState, QuietPeriod};
use stagger::observe::Action;
use stagger::testing::{NoSleep, Recorder, VirtualClock};
use stagger::time::{Clock as _, Tokio};
use stagger::{Cause, Guard as _, Outcome, Policy, Rejected, Retrier, StopReason, policy};
use tokio::time::{Instant as TokioInstant, timeout};

use super::support::ms;

const ONCE: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(1));
const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(3));
const SECOND: Duration = Duration::from_secs(1);

/// Classifies "429" as a refusal, and every other error as a transient failure.
fn retrier(policy: Policy, pacer: &Arc<Pacer>) -> Retrier {
    Retrier::new(policy).shared_guard(Arc::clone(pacer) as _).classify_exactly(|error: &&str| match *error {
        "429" => Outcome::throttled(None),
        _ => Outcome::TRANSIENT,
    })
}

fn shared(pacer: Pacer) -> Arc<Pacer> {
    Arc::new(pacer)
}

/// Makes 200 calls per second, of which every second one is refused, until 97 calls per second remain.
async fn learn(api: &Retrier) {
    for n in 0..230 {
        let _ = api.run(async || if n % 2 == 0 { Err("429") } else { Ok(()) }).await;
        tokio::time::sleep(ms(5)).await;
    }
}

fn learn_blocking(api: &Retrier, clock: &VirtualClock) {
    for n in 0..230 {
        let _ = api.blocking_call(|_| if n % 2 == 0 { Err("429") } else { Ok(()) }).timer(clock.clone()).run();
        clock.advance(ms(5));
    }
}

#[tokio::test(start_paused = true)]
async fn first_attempts_of_every_async_driver_start_at_the_admitted_rate() {
    for driver in 0..3 {
        let pacer = shared(Pacer::new());
        let api = retrier(ONCE, &pacer);
        learn(&api).await;
        assert_eq!(pacer.snapshot().state, PacerState::Paced);
        let start = TokioInstant::now();
        for _ in 0..100 {
            match driver {
                0 => api.run(async || Ok::<_, &str>(())).await.unwrap(),
                1 => {
                    let mut call = api.call();
                    while call.attempt(async { Ok::<_, &str>(()) }).await.is_none() {}
                }
                _ => {
                    let api = api.clone();
                    tokio::spawn(async move { api.run(async || Ok::<_, &str>(())).await.unwrap() }).await.unwrap();
                }
            }
        }
        let passed = start.elapsed();
        assert!((ms(900)..ms(1_100)).contains(&passed), "driver {driver}: {passed:?}");
    }
}

#[test]
fn first_attempts_of_blocking_calls_start_at_the_admitted_rate() {
    let (pacer, clock) = (shared(Pacer::new()), VirtualClock::new());
    let api = retrier(ONCE, &pacer);
    learn_blocking(&api, &clock);
    let start = clock.elapsed();
    for _ in 0..100 {
        api.blocking_call(|_| Ok::<_, &str>(())).timer(clock.clone()).run().unwrap();
    }
    let passed = clock.elapsed() - start;
    assert!((ms(900)..ms(1_100)).contains(&passed), "{passed:?}");
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_start_in_their_order() {
    let pacer = shared(Pacer::new());
    let api = retrier(ONCE, &pacer);
    learn(&api).await;
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(async move { api.run(async || Ok::<_, &str>(TokioInstant::now())).await.unwrap() })
        })
        .collect();
    let mut starts = Vec::new();
    for call in calls {
        starts.push(call.await.unwrap());
    }
    assert!(starts.is_sorted(), "{starts:?}");
    let most = (0..50).map(|n| starts[n..].iter().take_while(|at| **at < starts[n] + ms(100)).count()).max().unwrap();
    assert!(most <= 18, "{most} within 100 ms, at about 100/s");
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_its_turn_and_pays_once() {
    let (pacer, budget, attempts) = (shared(Pacer::new()), Arc::new(Tokens::new()), AtomicU32::new(0));
    learn(&retrier(ONCE, &pacer)).await;
    let api = retrier(POLICY, &pacer).shared_guard(Arc::clone(&budget) as _);
    let full = budget.available().unwrap();
    // A hundred others are before the retry: about a second.
    let others = retrier(ONCE, &pacer);
    let operation = async || {
        if attempts.fetch_add(1, Ordering::SeqCst) > 0 {
            assert_eq!(budget.available(), Some(full - 1), "charged once");
            return Ok(());
        }
        for _ in 0..100 {
            let others = others.clone();
            tokio::spawn(async move { others.run(async || Ok::<_, &str>(())).await });
        }
        Err("down")
    };
    let start = TokioInstant::now();
    api.run(operation).await.unwrap();
    let passed = start.elapsed();
    assert!((ms(800)..ms(1_200)).contains(&passed), "{passed:?}");
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_limits_end_before_its_turn_is_rejected_at_once() {
    let pacer = shared(Pacer::new());
    let recorder = Recorder::new();
    let api = retrier(ONCE, &pacer).on_event(recorder.listener());
    learn(&api).await;
    let before: Vec<_> = (0..100)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(async move { api.run(async || Ok::<_, &str>(())).await })
        })
        .collect();
    tokio::time::sleep(ms(1)).await;
    let start = TokioInstant::now();
    let error = api.run(async || Ok::<_, &str>(())).deadline(start + ms(500)).await.unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), start.elapsed()), (StopReason::PACER, 0, Duration::ZERO));
    let Cause::Rejected(Rejected::ByGuard { guard: "pacer", retry_in }) = error.cause() else { panic!("{error:?}") };
    assert!((ms(900)..ms(1_100)).contains(retry_in), "{retry_in:?}");
    assert_eq!(recorder.events().last().unwrap().action, Action::Stop(StopReason::PACER));
    let text = format!("{error:#}");
    assert!(text.contains("rejected: this client's own pacer has no turn for another 1"), "{text}");
    for call in before {
        call.await.unwrap().unwrap();
    }
}

#[test]
fn a_pacer_that_fails_fast_rejects_what_an_operator_can_let_through() {
    for (mode, is_rejected) in [(ControlMode::Enforced, true), (ControlMode::Observed, false)] {
        let (pacer, clock) = (shared(Pacer::new().max_waiting(0)), VirtualClock::new());
        let controls = RetryControls::new();
        let api = retrier(ONCE, &pacer).controls(&controls);
        learn_blocking(&api, &clock);
        controls.set("", mode);
        let answers = (0..50).map(|_| api.blocking_call(|_| Ok::<_, &str>(())).timer(clock.clone()).run());
        let errors: Vec<_> = answers.filter_map(Result::err).collect();
        assert_eq!(errors.len() > 40, is_rejected, "{mode:?}: {} of 50", errors.len());
        assert!(errors.iter().all(|error| error.stop_reason() == StopReason::PACER && error.attempts() == 0));
        let counted = controls.control("").snapshot();
        assert_eq!(counted.would_have_rejected > 40, !is_rejected, "{mode:?}: {counted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_or_cancelled_wait_frees_its_place_and_makes_no_attempt() {
    let pacer = shared(Pacer::new());
    let api = retrier(ONCE, &pacer);
    learn(&api).await;
    let others: Vec<_> = (0..200)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(async move { api.run(async || Ok::<_, &str>(())).await })
        })
        .collect();
    tokio::time::sleep(ms(1)).await;
    let waiting = pacer.snapshot().waiting;
    let call = timeout(ms(1), api.run(async || -> Result<(), &str> { panic!("no attempt is made") }));
    assert!(call.await.is_err());
    assert!(pacer.snapshot().waiting <= waiting, "dropped");
    let call = api.run(async || -> Result<(), &str> { panic!("no attempt is made") });
    let error = call.cancelled_by(tokio::time::sleep(ms(1))).await.unwrap_err();
    assert_eq!(error.stop_reason(), StopReason::Cancelled);
    others.iter().for_each(tokio::task::JoinHandle::abort);
    tokio::time::sleep(ms(10)).await;
    assert_eq!(pacer.snapshot().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn calls_come_back_from_a_pause_at_the_pace_of_both() {
    let (pacer, quiet) = (shared(Pacer::new()), Arc::new(QuietPeriod::new()));
    let api = retrier(ONCE, &pacer).shared_guard(Arc::clone(&quiet) as _);
    learn(&api).await;
    quiet.pause(2 * SECOND, &Tokio.now());
    let start = TokioInstant::now();
    let calls: Vec<_> = (0..40)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(async move { api.run(async || Ok::<_, &str>(TokioInstant::now())).await.unwrap() })
        })
        .collect();
    let mut starts = Vec::new();
    for call in calls {
        starts.push(call.await.unwrap() - start);
    }
    starts.sort();
    assert!(starts[0] >= 2 * SECOND, "{:?}", starts[0]);
    let most = (0..40).map(|n| starts[n..].iter().take_while(|at| **at < starts[n] + ms(100)).count()).max().unwrap();
    assert!(most <= 18, "{most} within 100 ms, at about 100/s");
    let (pacer, quiet) = (pacer.snapshot(), quiet.snapshot(&Tokio.now()));
    assert_eq!((pacer.waiting, quiet.waiting), (0, 0));
}

#[test]
fn a_blocking_wait_counts_among_the_sleeping_threads() {
    let (pacer, clock) = (shared(Pacer::new()), VirtualClock::new());
    let api = retrier(ONCE, &pacer).max_sleeping_threads(0);
    learn_blocking(&api, &clock);
    let stops: Vec<_> = (0..3)
        .filter_map(|_| api.blocking_call(|_| Ok::<_, &str>(())).timer(clock.clone()).run().err())
        .map(|error| {
            (error.stop_reason(), matches!(error.cause(), Cause::Rejected(Rejected::ByGuard { guard: "pacer", .. })))
        })
        .collect();
    assert!(stops.contains(&(StopReason::Threads, true)), "{stops:?}");
    assert_eq!(pacer.snapshot().waiting, 0);
}

#[test]
fn without_a_refusal_nothing_is_delayed() {
    let pacer = shared(Pacer::new());
    let api = retrier(POLICY, &pacer);
    let before = pacer.snapshot();
    for n in 0..1_000 {
        let _ = api.blocking_call(|_| if n % 3 == 0 { Err("timed out") } else { Ok(()) }).timer(NoSleep).run();
    }
    assert_eq!(pacer.snapshot(), before);
}
