//! Timers: by reference, for waits without an end, and on clocks that started before the first reading.

use core::cell::RefCell;
use core::future::{Ready, ready};
use core::pin::pin;
use core::time::Duration;

use futures_lite::future::block_on;
use stagger::reconnect::Reconnect;
use stagger::testing::VirtualClock;
use stagger::time::{BlockingSleep, Clock, Sleep, Tokio};
use stagger::{Cancel, Instant, Outcome, Policy, Retrier, Seed, blocking, policy, retry_with_timer};

use super::support::{Fail, PanickingTimer, ms, poll_times};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));

#[test]
fn a_reference_to_a_timer_has_its_resolution() {
    fn resolution<T: Sleep>(timer: T) -> Duration {
        timer.resolution()
    }
    assert_eq!([resolution(Tokio), resolution::<&Tokio>(&Tokio)], [ms(1); 2]);
}

/// A timer whose sleeps can be cancelled.
#[derive(Default)]
struct Cancellable(RefCell<Vec<Duration>>);

impl Clock for Cancellable {
    fn now(&self) -> Instant {
        Instant::ZERO
    }
}

impl BlockingSleep for Cancellable {
    fn sleep(&self, _: Duration) {
        panic!("it is not told of the cancellation");
    }

    fn sleep_unless(&self, length: Duration, _: &Cancel) {
        self.0.borrow_mut().push(length);
    }
}

#[test]
fn a_reference_to_a_timer_can_cancel_its_sleeps() {
    let (timer, cancel) = (Cancellable::default(), Cancel::new());
    let call = blocking::retry(&POLICY, || Err::<(), _>("no")).timer(&timer).cancelled_by(&cancel);
    assert_eq!(call.run().unwrap_err().attempts(), 3);
    assert_eq!(*timer.0.borrow(), [ms(10); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_timer_can_be_rearmed_for_longer_than_its_clock_can_represent() {
    let mut sleeping = Tokio.sleep(ms(1));
    Tokio.rearm(&mut sleeping, Duration::MAX);
    let year = Duration::from_secs(365 * 86_400);
    tokio::time::timeout(year, sleeping).await.unwrap_err();
}

/// The clock counts from the first reading in the process, which may be of another runtime.
#[test]
fn a_clock_that_is_behind_the_first_reading_advances() {
    let elapsed = |advance: Duration| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            tokio::time::advance(advance).await;
            let before = Tokio.now();
            tokio::time::advance(ms(1_000)).await;
            Tokio.now().saturating_since(before)
        })
    };
    assert_eq!([Duration::from_secs(3_600), Duration::ZERO].map(elapsed), [ms(1_000); 2]);
}

// Settled meaning 14: the driver compensates for the resolution of its timer.

#[test]
fn meaning_14_a_zero_delay_does_not_use_the_timer() {
    const ZERO: Policy = policy!(zero().max_attempts(5));
    let fails = || Err::<(), _>(Fail::TRANSIENT);
    let attempts = |error: stagger::Error<Fail>| error.attempts();

    blocking::retry(&ZERO, fails).timer(PanickingTimer).run().unwrap_err();
    blocking::retry(&ZERO, fails).timer(PanickingTimer).cancelled_by(&Cancel::new()).run().unwrap_err();
    block_on(retry_with_timer(&ZERO, PanickingTimer, async || fails())).unwrap_err();
    let retrier = Retrier::new(ZERO);
    let run = block_on(retrier.run_on(PanickingTimer, async || fails())).unwrap_err();
    let run_with = block_on(retrier.run_with_on(PanickingTimer, &mut (), async |(), _| fails())).unwrap_err();
    let reconnect = block_on(Reconnect::with_timer(PanickingTimer, ZERO, async || fails()).next()).unwrap_err();
    let blocking_reconnect = Reconnect::with_timer(PanickingTimer, ZERO, fails).next_blocking().unwrap_err();
    assert_eq!([run, run_with, reconnect, blocking_reconnect].map(attempts), [5; 4]);

    // Neither the immediate repeat of an unprocessed attempt nor a hint of zero uses the timer.
    let mut outcomes =
        [Outcome::NotProcessed, Outcome::throttled(Some(stagger::ServerHint::Reserved(Duration::ZERO)))].into_iter();
    let once_each = || outcomes.next().map_or(Ok(()), |outcome| Err(Fail(outcome)));
    assert_eq!(
        blocking::retry(&Policy::DEFAULT, once_each).classify(Fail::outcome).timer(PanickingTimer).run(),
        Ok(())
    );
}

/// A timer with a resolution of 1 ms that rounds the end of each sleep up to the next tick.
#[derive(Clone, Copy, Debug)]
struct CoarseTimer<'a>(&'a VirtualClock);

impl Clock for CoarseTimer<'_> {
    fn now(&self) -> Instant {
        self.0.now()
    }
}

impl Sleep for CoarseTimer<'_> {
    type Sleeping = Ready<()>;

    fn sleep(&self, length: Duration) -> Ready<()> {
        let until = self.0.elapsed() + length;
        let tick = until.as_nanos().next_multiple_of(1_000_000) - until.as_nanos();
        self.0.advance(length + Duration::from_nanos(u64::try_from(tick).unwrap()));
        ready(())
    }

    fn resolution(&self) -> Duration {
        ms(1)
    }
}

#[test]
fn meaning_14_delays_on_a_coarse_timer_keep_their_mean() {
    for micros in [1, 200, 500, 999, 1_000, 1_300, 7_777] {
        let policy = Policy::constant(Duration::from_micros(micros)).jitter(stagger::Jitter::None).max_attempts(20_001);
        let (policy, seed, fails) = (policy.build().unwrap(), Seed::new(micros), async || Err::<(), _>("no"));

        let (retry_clock, reconnect_clock) = (VirtualClock::new(), VirtualClock::new());
        block_on(retry_with_timer(&policy, CoarseTimer(&retry_clock), fails).seed(seed)).unwrap_err();
        let retrier = Retrier::new(policy).seed(seed);
        block_on(Reconnect::with_timer(CoarseTimer(&reconnect_clock), retrier, fails).next()).unwrap_err();
        for (driver, clock) in [("retry", retry_clock), ("Reconnect", reconnect_clock)] {
            let mean = clock.elapsed().as_secs_f64() * 1e6 / 20_000.0;
            // The number of ticks is binomial: four standard deviations are at most 4 · 500 µs / √20,000 = 14 µs.
            assert!((mean - micros as f64).abs() <= 14.2, "{driver}: {micros} µs took {mean:.1} µs on average");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn meaning_14_whole_ticks_are_exact_under_paused_time() {
    for millis in [1, 2, 3, 10, 64, 1_000] {
        let policy = Policy::constant(ms(millis)).jitter(stagger::Jitter::None).max_attempts(4).build().unwrap();
        let start = tokio::time::Instant::now();
        stagger::retry(&policy, async || Err::<(), _>("no")).await.unwrap_err();
        assert_eq!(start.elapsed(), ms(3 * millis));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_centuries_neither_ends_nor_panics() {
    const UNLIMITED: Policy = policy!(zero().unlimited_hint());
    let forever = Fail(Outcome::throttled(Some(stagger::ServerHint::Reserved(Duration::MAX))));
    let call = stagger::retry(&UNLIMITED, async || Err::<(), _>(forever)).classify(Fail::outcome);
    assert!(poll_times(pin!(call), 3).is_pending());

    // The timer of the time limit is rearmed for the wait.
    let call = stagger::retry(&UNLIMITED, async || {
        tokio::time::sleep(ms(1)).await;
        Err::<(), _>(forever)
    });
    let mut call = pin!(call.classify(Fail::outcome).timeout(Duration::MAX));
    tokio::time::timeout(Duration::from_secs(86_400 * 365), call.as_mut()).await.unwrap_err();
}

/// One delay of 200 µs in five becomes a tick of 1 ms; without compensation, a timer rounds each of them up to one or
/// two ticks. This seed draws 59 ticks for 300 delays.
///
/// A tick takes 1.1 ms on an idle machine, which makes an average delay of 217 µs; on a busy machine it takes several
/// milliseconds. So each round of delays is compared with 59 single ticks, and one round of ten must be within 30 %.
#[test]
fn meaning_14_delays_of_200_us_keep_their_mean_on_the_real_timer() {
    let policy = Policy::constant(Duration::from_micros(200)).jitter(stagger::Jitter::None).max_attempts(301);
    let policy = policy.build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let round = async || {
        let start = std::time::Instant::now();
        let call = stagger::retry(&policy, async || Err::<(), _>("no")).seed(Seed::new(1));
        assert_eq!(call.await, Err("no"));
        let delays = start.elapsed();
        for _ in 0..59 {
            tokio::time::sleep(Duration::from_nanos(1)).await;
        }
        (delays / 300, (start.elapsed() - delays) / 300)
    };
    let mut rounds = Vec::new();
    for _ in 0..10 {
        let (mean, expected) = runtime.block_on(round());
        rounds.push((mean, expected));
        if mean.abs_diff(expected) <= expected * 3 / 10 {
            return;
        }
    }
    panic!("mean delay and expected mean of each round: {rounds:?}");
}
