//! A [`QuietPeriod`] under the drivers: calls wait for their turn within their limits, or are rejected at once.

use core::future::Future;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Waker};
use core::time::Duration;
use std::sync::Arc;

use stagger::budget::Tokens;
use stagger::guard::{Pacer, QuietPeriod, QuietState, QuietTrigger};
use stagger::observe::Action;
use stagger::testing::{NoSleep, Recorder, VirtualClock};
use stagger::time::Clock as _;
use stagger::{Cause, Guard as _, Instant, Outcome, Policy, Rejected, Retrier, ServerHint, StopReason, policy};
use tokio::sync::Notify;
use tokio::time::{Instant as TokioInstant, timeout};

use super::support::{CountingClock, RecordingBreaker, RecordingBudget, ms};

const ONCE: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(1));
const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(3));
const SECOND: Duration = Duration::from_secs(1);

/// Classifies a number as a hint of so many seconds, and 0 as a transient failure.
fn retrier(policy: Policy, quiet: &Arc<QuietPeriod>) -> Retrier {
    Retrier::new(policy).shared_guard(Arc::clone(quiet) as _).classify_exactly(|seconds: &u64| match seconds {
        0 => Outcome::TRANSIENT,
        seconds => Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(*seconds)))),
    })
}

fn shared() -> Arc<QuietPeriod> {
    Arc::new(QuietPeriod::new())
}

#[tokio::test(start_paused = true)]
async fn one_hint_holds_first_attempts_of_every_async_driver() {
    for driver in 0..3 {
        let quiet = shared();
        let api = retrier(ONCE, &quiet);
        assert_eq!(api.run(async || Err::<(), u64>(10)).await.unwrap_err().attempts(), 1);
        let start = TokioInstant::now();
        match driver {
            0 => api.run(async || Ok::<_, u64>(())).await.unwrap(),
            1 => {
                let mut call = api.call();
                while call.attempt(async { Ok::<_, u64>(()) }).await.is_none() {}
            }
            _ => tokio::spawn(async move { api.run(async || Ok::<_, u64>(())).await.unwrap() }).await.unwrap(),
        }
        let waited = start.elapsed();
        assert!((10 * SECOND..10 * SECOND + ms(5)).contains(&waited), "driver {driver}: {waited:?}");
    }
}

#[test]
fn one_hint_holds_first_attempts_of_blocking_calls() {
    let (quiet, clock) = (shared(), VirtualClock::new());
    let api = retrier(ONCE, &quiet);
    assert!(api.blocking_call(|_| Err::<(), u64>(10)).timer(clock.clone()).run().is_err());
    assert!(api.blocking_call(|_| Ok::<_, u64>(())).timer(clock.clone()).run().is_ok());
    assert_eq!(clock.elapsed(), 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_sleeping_retry_waits_on_and_pays_once() {
    let (quiet, budget, attempts) = (shared(), Arc::new(Tokens::new()), Arc::new(AtomicU32::new(0)));
    let api = retrier(POLICY, &quiet).shared_guard(Arc::clone(&budget) as _);
    let start = TokioInstant::now();
    let call = tokio::spawn({
        let (api, attempts) = (api.clone(), Arc::clone(&attempts));
        async move {
            api.run(async || match attempts.fetch_add(1, Ordering::SeqCst) {
                0 => Err(0),
                _ => Ok(()),
            })
            .await
        }
    });
    tokio::time::sleep(ms(50)).await;
    let before = budget.available();
    // Another call meets the hint while the retry of the first one sleeps.
    assert!(retrier(ONCE, &quiet).run(async || Err::<(), u64>(5)).await.is_err());
    tokio::time::sleep(ms(500)).await;
    assert_eq!((attempts.load(Ordering::SeqCst), budget.available()), (1, before), "it waits, and has paid");
    call.await.unwrap().unwrap();
    // A retry is the probe only if no first attempt has come within 100 ms.
    let waited = start.elapsed();
    assert!((ms(5_150)..ms(5_160)).contains(&waited), "{waited:?}");
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_limits_end_before_its_turn_is_rejected_at_once() {
    let quiet = shared();
    let recorder = Recorder::new();
    let api = retrier(ONCE, &quiet).on_event(recorder.listener());
    assert!(api.run(async || Err::<(), u64>(10)).await.is_err());
    let start = TokioInstant::now();
    let error = api.run(async || Ok::<_, u64>(())).deadline(start + 3 * SECOND).await.unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::QUIET, 0));
    let Cause::Rejected(Rejected::ByGuard { guard: "quiet", retry_in }) = error.cause() else { panic!("{error:?}") };
    // The end of a pause is rounded up to the microsecond.
    assert!((10 * SECOND..=10 * SECOND + Duration::from_micros(1)).contains(retry_in), "{retry_in:?}");
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(recorder.events().last().unwrap().action, Action::Stop(StopReason::QUIET));
    let text = format!("{error:#}");
    assert!(text.contains("rejected: the server asked this client to pause, and the pause lasts another 10"), "{text}");
}

#[test]
fn fail_fast_rejects_every_driver_with_the_remaining_time() {
    let quiet = Arc::new(QuietPeriod::builder().max_waiting(0).build().unwrap());
    let clock = VirtualClock::new();
    let api = retrier(POLICY, &quiet);
    let budget = Arc::new(Tokens::new());
    let full = budget.available();
    let api = api.shared_guard(Arc::clone(&budget) as _);
    // The retry is due before the end of the pause: it is not waited for, and not paid.
    let operation = |_| {
        quiet.pause(4 * SECOND, &clock.now());
        Err::<(), u64>(0)
    };
    let error = api.blocking_call(operation).timer(clock.clone()).run().unwrap_err();
    assert_eq!((error.stop_reason(), error.error()), (StopReason::QUIET, Some(&0)));
    let error = api.blocking_call(|_| Ok::<_, u64>(())).timer(clock.clone()).run().unwrap_err();
    let want = Cause::Rejected(Rejected::ByGuard { guard: "quiet", retry_in: 4 * SECOND });
    assert_eq!((error.stop_reason(), error.attempts(), error.cause()), (StopReason::QUIET, 0, &want));
    assert_eq!((budget.available(), clock.elapsed()), (full, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_or_cancelled_wait_frees_its_place_and_makes_no_attempt() {
    let quiet = shared();
    let api = retrier(ONCE, &quiet);
    assert!(api.run(async || Err::<(), u64>(10)).await.is_err());
    let waiting = || quiet.snapshot(&Instant::from_nanos(0)).waiting;
    let call = timeout(SECOND, api.run(async || -> Result<(), u64> { panic!("no attempt is made") }));
    assert!(call.await.is_err());
    assert_eq!(waiting(), 0, "dropped");
    let call = api.run(async || -> Result<(), u64> { panic!("no attempt is made") });
    let error = call.cancelled_by(tokio::time::sleep(SECOND)).await.unwrap_err();
    assert_eq!((error.stop_reason(), waiting()), (StopReason::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_lets_the_next_call_probe() {
    let quiet = shared();
    let api = retrier(ONCE, &quiet);
    assert!(api.run(async || Err::<(), u64>(1)).await.is_err());
    let slow = api.run(async || {
        tokio::time::sleep(60 * SECOND).await;
        Ok::<_, u64>(())
    });
    assert!(timeout(2 * SECOND, slow).await.is_err(), "the probe is in flight");
    let start = TokioInstant::now();
    api.run(async || Ok::<_, u64>(())).await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_waiting_calls_return_one_by_one() {
    let quiet = shared();
    let api = retrier(ONCE, &quiet);
    for _ in 0..400 {
        api.run(async || Ok::<_, u64>(())).await.unwrap();
        tokio::time::sleep(ms(10)).await;
    }
    let start = TokioInstant::now();
    assert!(api.run(async || Err::<(), u64>(2)).await.is_err());
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let api = api.clone();
            tokio::spawn(async move { api.run(async || Ok::<_, u64>(TokioInstant::now())).await.unwrap() })
        })
        .collect();
    let mut starts = Vec::new();
    for call in calls {
        starts.push(call.await.unwrap() - start);
    }
    starts.sort();
    assert!(starts[0] >= 2 * SECOND, "{:?}", starts[0]);
    let most = (0..100).map(|n| starts[n..].iter().take_while(|at| **at < starts[n] + ms(100)).count()).max().unwrap();
    assert!(most <= 18, "{most} within 100 ms, at about 100/s");
    assert!(starts[99] <= ms(3_100), "{:?}", starts[99]);
    assert_eq!(quiet.snapshot(&Instant::from_nanos(0)).state, QuietState::Open);
}

#[test]
fn a_blocking_wait_counts_among_the_sleeping_threads() {
    let quiet = shared();
    let api = retrier(ONCE, &quiet).max_sleeping_threads(0);
    assert!(api.blocking_call(|_| Err::<(), u64>(10)).timer(NoSleep).run().is_err());
    let error = api.blocking_call(|_| Ok::<_, u64>(())).timer(NoSleep).run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Threads, 0));
    assert_eq!(quiet.snapshot(&Instant::from_nanos(0)).waiting, 0);
}

// Guards that hold no calls: what they learn of first attempts that succeed at once.

/// Refusals that begin a pause without a hint, after one that has ended.
const TOO_MANY: usize = 11;

/// The error of a call: a refusal with a hint of so many seconds, or without one.
type Refusal = Option<u64>;

/// Returns retriers that own their quiet period, and that share it, without and with a pacer.
fn retriers() -> [(&'static str, Retrier); 3] {
    let refusals = || QuietPeriod::builder().trigger(QuietTrigger::HintsAndRefusals).build().unwrap();
    let known = Retrier::new(ONCE).guard(refusals());
    let shared = Retrier::new(ONCE).shared_guard(Arc::new(refusals()));
    let paced = Retrier::new(ONCE).guard(Pacer::new()).guard(QuietPeriod::new());
    [("known", known), ("shared", shared), ("with a pacer", paced)].map(|(name, retrier)| {
        let hint = |seconds: u64| ServerHint::AtLeast(Duration::from_secs(seconds));
        (name, retrier.classify_exactly(move |refusal: &Refusal| Outcome::throttled(refusal.map(hint))))
    })
}

async fn succeed(api: &Retrier) {
    api.run(async || Ok::<_, Refusal>(())).await.unwrap();
}

async fn be_refused(api: &Retrier, refusal: Refusal) {
    assert!(api.run(async || Err::<(), _>(refusal)).await.is_err());
}

#[test]
fn an_open_quiet_period_reads_the_clock_at_most_once_a_second() {
    let reads = |api: &Retrier| {
        let clock = CountingClock::default();
        for _ in 0..10_000 {
            api.blocking_call(|_| Ok::<_, Refusal>(())).timer(&clock).run().unwrap();
            clock.advance(ms(1));
        }
        clock.reads()
    };
    let without = reads(&Retrier::new(ONCE));
    assert_eq!(without, 10_000, "each call reads its start, which its error would need");
    for (name, api) in retriers() {
        let more = reads(&api) - without;
        assert!((9..=11).contains(&more), "{name}: {more} in 10 s");
    }
}

#[tokio::test(start_paused = true)]
async fn successes_teach_the_rate_of_the_return() {
    for (name, api) in retriers().into_iter().take(2) {
        for _ in 0..400 {
            succeed(&api).await;
            tokio::time::sleep(ms(10)).await;
        }
        be_refused(&api, Some(2)).await;
        let start = TokioInstant::now();
        let calls: Vec<_> = (0..50)
            .map(|_| {
                tokio::spawn({
                    let api = api.clone();
                    async move { succeed(&api).await }
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        let returned = start.elapsed() - 2 * SECOND;
        assert!((ms(400)..ms(600)).contains(&returned), "{name}: 50 calls at 100/s within {returned:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_that_began_before_a_pause_does_not_end_it() {
    for (name, api) in retriers() {
        let slow = api.run(async || {
            be_refused(&api, Some(10)).await;
            Ok::<_, Refusal>(())
        });
        slow.await.unwrap();
        let start = TokioInstant::now();
        succeed(&api).await;
        assert!(start.elapsed() >= 10 * SECOND, "{name}: {:?}", start.elapsed());
    }
}

/// Makes refusals of attempts that have begun before `between`, and returns how long the next call is held.
async fn held_after_late_refusals(api: &Retrier, between: impl Future<Output = ()>) -> Duration {
    let answer = Notify::new();
    let mut slow: Vec<_> = (0..TOO_MANY)
        .map(|_| {
            Box::pin(api.run(async || {
                answer.notified().await;
                Err::<(), Refusal>(None)
            }))
        })
        .collect();
    let mut cx = Context::from_waker(Waker::noop());
    for call in &mut slow {
        assert!(call.as_mut().poll(&mut cx).is_pending());
    }
    between.await;
    answer.notify_waiters();
    for call in slow {
        assert!(call.await.is_err());
    }
    let start = TokioInstant::now();
    succeed(api).await;
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn refusals_of_attempts_that_began_before_a_pause_do_not_begin_another() {
    // The pacer would hold calls for reasons of its own.
    for (name, api) in retriers().into_iter().take(2) {
        let pause = async {
            be_refused(&api, Some(1)).await;
            succeed(&api).await;
            succeed(&api).await;
        };
        assert_eq!(held_after_late_refusals(&api, pause).await, Duration::ZERO, "{name}");
    }
    for (name, api) in retriers().into_iter().take(2) {
        let held = held_after_late_refusals(&api, async {}).await;
        assert!(held >= SECOND, "{name}: without a pause between, so many begin one: {held:?}");
    }
}

#[test]
fn guards_beside_the_quiet_period_are_asked() {
    for (name, api) in retriers() {
        let (budget, breaker) = (RecordingBudget::new(1), Arc::new(RecordingBreaker::open(Duration::MAX)));
        let ok = |_| Ok::<_, Refusal>(());
        api.blocking_call(ok).guard(&budget).run().unwrap();
        assert_eq!(budget.snapshot().recorded, [Outcome::Success], "{name}: the budget of one call");
        for error in [
            api.blocking_call(ok).guard(&*breaker).run().unwrap_err(),
            api.clone().shared_guard(breaker.clone()).blocking_call(ok).run().unwrap_err(),
        ] {
            assert!(
                matches!(error.into_cause(), Cause::Rejected(Rejected::ByGuard { guard: "breaker", .. })),
                "{name}"
            );
        }
        let budget = Arc::new(RecordingBudget::new(1));
        api.shared_guard(budget.clone()).blocking_call(ok).run().unwrap();
        assert_eq!(budget.snapshot().recorded, [Outcome::Success], "{name}: the budget of the retrier");
    }
}
