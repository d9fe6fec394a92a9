//! Settled meaning 8: a hint is a minimum even if the timer wakes early, and a reservation is kept exactly.

use core::cell::RefCell;
use core::future::{poll_fn, ready};
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use futures_lite::future::block_on;
use stagger::reconnect::Reconnect;
use stagger::testing::VirtualClock;
use stagger::time::{BlockingSleep, Sleep, SleepFn};
use stagger::{Instant, Marked, Outcome, Policy, Retrier, Seed, ServerHint, blocking, policy, retry_with_timer};

use super::support::{EarlyTimer, Fail, ms, nanos, poll_times};

const POLICY: Policy = policy!(exponential(ms(10), ms(100)).max_attempts(2));

fn hinted(hint: ServerHint) -> Fail {
    Fail(Outcome::throttled(Some(hint)))
}

/// Returns the time of the second attempt for each driver. `timer` must return a timer whose clock is at zero.
fn second_attempts<T>(hint: ServerHint, seed: Seed, timer: impl Fn() -> T) -> Vec<(&'static str, Instant)>
where
    T: Sleep + BlockingSleep + Clone,
{
    let mut times = Vec::new();
    let mut driver = |name, run: &dyn Fn(&T, &mut Instant)| {
        let (timer, mut last) = (timer(), Instant::ZERO);
        run(&timer, &mut last);
        times.push((name, last));
    };
    driver("blocking::retry", &|timer, last| {
        let fails = || {
            *last = timer.now();
            Err::<(), _>(Marked::throttled("no", Some(hint)))
        };
        blocking::retry(&POLICY, fails).seed(seed).timer(timer).run().unwrap_err();
    });
    driver("retry", &|timer, last| {
        let fails = || {
            *last = timer.now();
            ready(Err::<(), _>(hinted(hint)))
        };
        block_on(retry_with_timer(&POLICY, timer, fails).classify(Fail::outcome).seed(seed)).unwrap_err();
    });
    driver("Retrier::run_with", &|timer, last| {
        let retrier = Retrier::new(POLICY).classify(Fail::outcome).seed(seed);
        let fails = async |last: &mut Instant, _| {
            *last = timer.now();
            Err::<(), _>(hinted(hint))
        };
        block_on(retrier.run_with_on(timer.clone(), last, fails)).unwrap_err();
    });
    driver("Reconnect::next", &|timer, last| {
        let fails = || {
            *last = timer.now();
            ready(Err::<(), _>(hinted(hint)))
        };
        let retrier = Retrier::new(POLICY).classify(Fail::outcome).seed(seed);
        block_on(Reconnect::with_timer(timer, retrier, fails).next()).unwrap_err();
    });
    times
}

#[test]
fn meaning_08_an_early_timer_does_not_retry_early() {
    let floor = nanos(2_345_678);
    for percent in [1, 33, 60, 99] {
        for seed in (0..20).map(Seed::new) {
            let on_time = second_attempts(ServerHint::AtLeast(floor), seed, VirtualClock::new);
            let early = second_attempts(ServerHint::AtLeast(floor), seed, || EarlyTimer::new(percent));
            assert_eq!(early, on_time, "{percent} % of each sleep, {seed:?}");
            for (driver, time) in early {
                assert!(time.saturating_since(Instant::ZERO) >= floor, "{driver}: {time:?}, {percent} %, {seed:?}");
            }
        }
    }
}

#[test]
fn meaning_08_a_reservation_is_kept_to_the_nanosecond() {
    for reservation in [nanos(1), nanos(999), nanos(1_234_567), ms(20), Duration::from_secs(200)] {
        for percent in [10, 100] {
            for (driver, time) in
                second_attempts(ServerHint::Reserved(reservation), Seed::new(1), || EarlyTimer::new(percent))
            {
                assert_eq!(time.saturating_since(Instant::ZERO), reservation, "{driver}, {percent} % of each sleep");
            }
        }
    }
}

#[test]
fn meaning_08_a_delay_without_a_hint_sleeps_once() {
    let early = EarlyTimer::new(50);
    block_on(retry_with_timer(&POLICY, &early, || ready(Err::<(), _>("no")))).unwrap_err();
    blocking::retry(&POLICY, || Err::<(), _>("no")).timer(&early).run().unwrap_err();
    assert_eq!(early.clock.sleeps().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn meaning_08_tokio_rounds_a_reservation_up_to_the_next_tick() {
    for (reservation, want) in [(ms(20), ms(20)), (ms(20) + nanos(1), ms(21)), (nanos(1), ms(1)), (ms(1), ms(1))] {
        let start = tokio::time::Instant::now();
        let fails = async || Err::<(), _>(hinted(ServerHint::Reserved(reservation)));
        stagger::retry(&POLICY, fails).classify(Fail::outcome).await.unwrap_err();
        assert_eq!(start.elapsed(), want, "{reservation:?}");
    }
}

/// The first attempt fails with a hint of 30 ms. The call is dropped during the sleep and resumed on a timer that wakes
/// early.
#[test]
fn meaning_08_a_dropped_hint_sleep_resumes_as_a_hint() {
    let (clock, connects) = (VirtualClock::new(), RefCell::new(Vec::new()));
    let sleep = |length: Duration| {
        let mut polls_left = 1;
        let clock = clock.clone();
        Box::pin(poll_fn(move |_| {
            if polls_left == 1 {
                polls_left = 0;
                return Poll::Pending;
            }
            clock.advance((length / 3).max(nanos(1)));
            Poll::Ready(())
        }))
    };
    let fails = async || {
        connects.borrow_mut().push(clock.elapsed());
        Err::<(), _>(hinted(ServerHint::Reserved(ms(30))))
    };
    let retrier = Retrier::new(POLICY).classify(Fail::outcome).seed(Seed::new(1));
    let mut links = Reconnect::with_timer(SleepFn::with_clock(sleep, &clock), retrier, fails);
    assert!(poll_times(pin!(links.next()), 1).is_pending());
    assert!(poll_times(pin!(links.next()), 200).is_ready());
    assert_eq!(*connects.borrow(), [ms(0), ms(30)]);
}
