//! Calls whose only guards are limiters that hold no calls: a first attempt that succeeds at once takes a shorter path, on
//! which the guards must learn the same.

use core::future::Future;
use core::task::{Context, Waker};
use core::time::Duration;
use std::sync::Arc;

use stagger::guard::{Pacer, QuietPeriod};
use stagger::{Guards, Outcome, Policy, Rejected, Retrier, ServerHint, policy};
use tokio::sync::Notify;
use tokio::time::Instant as TokioInstant;

use super::support::{CountingClock, RecordingBreaker, RecordingBudget, ms};

const ONCE: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(1));
const SECOND: Duration = Duration::from_secs(1);
/// Refusals that begin a pause without a hint, after one that has ended.
const TOO_MANY: usize = 11;

/// The error of a call: a refusal with a hint of so many seconds, or without one.
type Refusal = Option<u64>;

/// Returns retriers that know their quiet period by its type, and by its interface alone, without and with a pacer.
fn retriers() -> [(&'static str, Retrier); 3] {
    let known = Retrier::new(ONCE).quiet_period(QuietPeriod::new());
    let shared = Retrier::new(ONCE).shared_quiet_period(Arc::new(QuietPeriod::new()));
    let paced = Retrier::new(ONCE).quiet_period(QuietPeriod::new()).pacer(Pacer::new());
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
async fn successes_on_the_fast_path_teach_the_rate_of_the_return() {
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
        api.blocking_call(ok).budget(&budget).run().unwrap();
        assert_eq!(budget.snapshot().recorded, [Outcome::Success], "{name}: the budget of one call");
        for error in [
            api.blocking_call(ok).breaker(&*breaker).run().unwrap_err(),
            api.blocking_call(ok).guards(Guards::none().breaker(&*breaker)).run().unwrap_err(),
            api.clone().shared_breaker(breaker.clone()).blocking_call(ok).run().unwrap_err(),
        ] {
            assert!(matches!(error.into_cause(), stagger::Cause::Rejected(Rejected::BreakerOpen(_))), "{name}");
        }
        let budget = Arc::new(RecordingBudget::new(1));
        api.shared_budget(budget.clone()).blocking_call(ok).run().unwrap();
        assert_eq!(budget.snapshot().recorded, [Outcome::Success], "{name}: the budget of the retrier");
    }
}
