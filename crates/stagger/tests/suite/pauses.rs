//! The machine sleeps during a wait, or the process is stopped: all timers that came due meanwhile fire at once.

use core::cell::RefCell;
use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::rc::Rc;

use stagger::reconnect::interval;
use stagger::testing::VirtualClock;
use stagger::time::{BlockingSleep, Clock, Sleep};
use stagger::{Instant, Policy, Ratio, Retrier, Seed, StopReason, blocking, policy};

use super::support::ms;

const CALLS: u64 = 1_000;
const HOUR: Duration = Duration::from_secs(3_600);
/// Every call is in the wait before its second attempt when the machine falls asleep.
const POLICY: Policy = policy!(exponential(secs(10), secs(10)).max_attempts(2));

/// A timer whose futures complete when its clock has reached their end, as those of a runtime do. Polled by hand.
#[derive(Clone, Debug)]
struct Alarm(VirtualClock);

impl Clock for Alarm {
    fn now(&self) -> Instant {
        self.0.now()
    }
}

#[derive(Debug)]
struct Ringing {
    clock: VirtualClock,
    until: Instant,
}

impl Future for Ringing {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() < self.until { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Sleep for Alarm {
    type Sleeping = Ringing;

    fn sleep(&self, length: Duration) -> Ringing {
        Ringing { clock: self.0.clone(), until: self.now().saturating_add(length) }
    }
}

/// Arrivals per 100 ms after the pause.
fn per_tenth(arrivals: &[Duration]) -> Vec<usize> {
    let mut bins = vec![0; 101];
    for arrival in arrivals {
        bins[usize::try_from(arrival.as_millis() / 100).unwrap().min(100)] += 1;
    }
    bins
}

/// Checks that a thousand arrivals are spread over ten seconds: ten per 100 ms, and never a wave.
fn assert_spread(arrivals: &[Duration]) {
    let bins = per_tenth(arrivals);
    assert_eq!(arrivals.len() as u64, CALLS);
    assert!(bins.iter().max() <= Some(&30), "a wave: {bins:?}");
    assert!(arrivals.iter().max() <= Some(&ms(10_010)), "beyond the longest delay: {bins:?}");
    let occupied = bins.iter().filter(|&&number| number > 0).count();
    assert!(occupied >= 90, "{bins:?}");
}

/// Polls all calls every 10 ms from the moment at which the machine wakes up.
fn run_after_a_pause<F: Future>(clock: &VirtualClock, pause: Duration, calls: Vec<F>) -> Vec<F::Output> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut calls: Vec<_> = calls.into_iter().map(Box::pin).collect();
    for call in &mut calls {
        assert!(call.as_mut().poll(&mut cx).is_pending(), "every call waits");
    }
    clock.advance(pause);
    let mut outputs = Vec::new();
    while !calls.is_empty() {
        calls.retain_mut(|call| match call.as_mut().poll(&mut cx) {
            Poll::Ready(output) => {
                outputs.push(output);
                false
            }
            Poll::Pending => true,
        });
        clock.advance(ms(10));
    }
    outputs
}

/// Runs a thousand async calls that fail at first. Returns when their second attempts arrive, after the pause.
fn arrivals(policy: Policy, pause: Duration) -> Vec<Duration> {
    let clock = VirtualClock::new();
    let retriers: Vec<_> = (0..CALLS).map(|seed| Retrier::new(policy).seed(Seed::new(seed))).collect();
    let arrivals = Rc::new(RefCell::new(Vec::new()));
    let calls = retriers.iter().map(|retrier| {
        let (clock, arrivals, mut attempts) = (clock.clone(), Rc::clone(&arrivals), 0);
        retrier.run_on(Alarm(clock.clone()), move || {
            attempts += 1;
            if attempts == 2 {
                arrivals.borrow_mut().push(clock.elapsed() - pause);
            }
            core::future::ready(if attempts == 2 { Ok(()) } else { Err("down") })
        })
    });
    assert!(run_after_a_pause(&clock, pause, calls.collect()).iter().all(Result::is_ok));
    arrivals.take()
}

#[test]
fn async_calls_that_wake_up_together_are_spread_again() {
    assert_spread(&arrivals(POLICY, HOUR));
}

#[test]
fn calls_of_a_policy_alone_are_spread_again() {
    let clock = VirtualClock::new();
    let arrivals = RefCell::new(Vec::new());
    let (recorded, now) = (&arrivals, &clock);
    let calls = (0..CALLS).map(|seed| {
        let mut attempts = 0;
        stagger::retry(&POLICY, move || {
            attempts += 1;
            if attempts == 2 {
                recorded.borrow_mut().push(now.elapsed() - HOUR);
            }
            core::future::ready(if attempts == 2 { Ok(()) } else { Err("down") })
        })
        .timer(Alarm(clock.clone()))
        .seed(Seed::new(seed))
    });
    let calls = calls.map(IntoFuture::into_future).collect();
    assert!(run_after_a_pause(&clock, HOUR, calls).iter().all(Result::is_ok));
    assert_spread(&arrivals.borrow());
}

#[test]
fn calls_in_loop_form_are_spread_again() {
    let clock = VirtualClock::new();
    let now = &clock;
    let retriers: Vec<_> = (0..CALLS).map(|seed| Retrier::new(POLICY).seed(Seed::new(seed))).collect();
    let calls = retriers.iter().map(|retrier| async move {
        let mut call = retrier.call_on(Alarm(now.clone()));
        assert!(call.attempt(async { Err::<(), _>("down") }).await.is_none(), "another attempt");
        now.elapsed() - HOUR
    });
    assert_spread(&run_after_a_pause(&clock, HOUR, calls.collect()));
}

/// A timer whose first sleep ends late, because the process is stopped meanwhile.
#[derive(Clone, Debug)]
struct Stopped {
    clock: VirtualClock,
    late: Duration,
}

impl Clock for Stopped {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

impl BlockingSleep for Stopped {
    fn sleep(&self, length: Duration) {
        let is_first = self.clock.sleeps().is_empty();
        BlockingSleep::sleep(&self.clock, length);
        if is_first {
            self.clock.advance(self.late);
        }
    }
}

#[test]
fn blocking_calls_that_wake_up_together_are_spread_again() {
    let arrival = |seed| {
        let timer = Stopped { clock: VirtualClock::new(), late: HOUR };
        let mut attempts = 0;
        let answer = Retrier::new(POLICY)
            .blocking_call(|_| {
                attempts += 1;
                if attempts == 2 { Ok(timer.clock.elapsed() - HOUR) } else { Err("down") }
            })
            .timer(timer.clone())
            .seed(Seed::new(seed))
            .run();
        answer.unwrap() - timer.clock.sleeps()[0]
    };
    assert_spread(&(0..CALLS).map(arrival).collect::<Vec<_>>());
}

/// Runs a call that fails twice. Its seed draws a delay of more than 100 ms: shorter ones are not watched.
fn down<T: BlockingSleep + Clock + Clone>(timer: T) -> stagger::Error<&'static str> {
    let retrier = Retrier::new(POLICY);
    let call = retrier.blocking_call(|_| Err::<(), _>("down")).timer(timer).seed(Seed::new(1));
    call.run().expect_err("every attempt fails")
}

// A busy runtime fires timers late, too.
#[test]
fn a_timer_that_is_a_second_late_is_on_time() {
    for (late, sleeps) in [(ms(1_000), 1), (ms(1_001), 2)] {
        let timer = Stopped { clock: VirtualClock::new(), late };
        let answer = down(timer.clone());
        assert_eq!((answer.attempts(), timer.clock.sleeps().len()), (2, sleeps), "{late:?} late");
    }
}

#[test]
fn the_second_wait_is_no_longer_than_the_pause() {
    let waits = arrivals(POLICY, ms(14_000));
    // Every delay ended 4 to 14 s before the machine woke up.
    assert!(waits.iter().max() > Some(&ms(9_000)));
    let waits = arrivals(policy!(exponential(secs(1), secs(1)).max_attempts(2)), ms(3_000));
    assert!(waits.iter().all(|wait| *wait <= ms(1_010)), "{waits:?}");
}

#[test]
fn a_wait_is_spread_once() {
    /// Every sleep ends an hour late.
    #[derive(Clone, Debug)]
    struct AlwaysLate(VirtualClock);
    impl Clock for AlwaysLate {
        fn now(&self) -> Instant {
            self.0.now()
        }
    }
    impl BlockingSleep for AlwaysLate {
        fn sleep(&self, length: Duration) {
            BlockingSleep::sleep(&self.0, length);
            self.0.advance(HOUR);
        }
    }
    let clock = VirtualClock::new();
    assert_eq!((down(AlwaysLate(clock.clone())).attempts(), clock.sleeps().len()), (2, 2));
}

#[test]
fn a_deadline_that_passed_during_the_pause_ends_the_call_at_once() {
    let timer = Stopped { clock: VirtualClock::new(), late: HOUR };
    let answer = Retrier::new(POLICY)
        .blocking_call(|_| Err::<(), _>("down"))
        .timer(timer.clone())
        .deadline(Instant::ZERO.saturating_add(ms(20_000)))
        .run();
    assert_eq!(answer.unwrap_err().stop_reason(), StopReason::Deadline);
    assert_eq!(timer.clock.sleeps().len(), 1, "no other wait");
}

#[test]
fn a_hint_is_spread_again_too() {
    let arrival = |seed| {
        let timer = Stopped { clock: VirtualClock::new(), late: HOUR };
        let mut attempts = 0;
        let hint = stagger::ServerHint::Reserved(ms(5_000));
        let answer = Retrier::new(POLICY)
            .classify_exactly(move |_: &&str| stagger::Outcome::throttled(Some(hint)))
            .blocking_call(|_| {
                attempts += 1;
                if attempts == 2 { Ok(timer.clock.elapsed() - HOUR - ms(5_000)) } else { Err("busy") }
            })
            .timer(timer.clone())
            .seed(Seed::new(seed))
            .run();
        answer.unwrap()
    };
    assert_spread(&(0..CALLS).map(arrival).collect::<Vec<_>>());
}

/// Returns when each of a thousand tickers, started together, ticks first after a pause that begins at `begin`.
fn ticks_after(period: Duration, begin: Duration, pause: Duration) -> Vec<(Duration, u64)> {
    let clock = VirtualClock::new();
    let mut cx = Context::from_waker(Waker::noop());
    let mut tickers: Vec<_> =
        (0..CALLS).map(|seed| interval(period, Ratio::ZERO, Alarm(clock.clone())).seed(Seed::new(seed))).collect();
    while clock.elapsed() < begin {
        for ticker in &mut tickers {
            while ticker.poll_tick(&mut cx).is_ready() {}
        }
        clock.advance(ms(900).min(period / 100));
    }
    let asleep = clock.elapsed();
    clock.advance(pause);
    let mut ticks = Vec::new();
    while !tickers.is_empty() {
        tickers.retain_mut(|ticker| match ticker.poll_tick(&mut cx) {
            Poll::Ready(tick) => {
                ticks.push((clock.elapsed() - asleep - pause, tick.unwrap().missed));
                false
            }
            Poll::Pending => true,
        });
        clock.advance(period / 1_000);
    }
    ticks
}

#[test]
fn ticks_missed_during_a_pause_are_skipped_and_the_next_keeps_its_place() {
    let ticks = ticks_after(ms(10_000), ms(20_000), HOUR);
    assert_spread(&ticks.iter().map(|(at, _)| *at).collect::<Vec<_>>());
    assert!(ticks.iter().all(|(_, missed)| (359..=361).contains(missed)), "{ticks:?}");
}

#[test]
fn a_tick_that_came_due_during_a_short_pause_is_late_by_at_most_as_much_again() {
    let ticks = ticks_after(ms(600_000), ms(600_000), ms(120_000));
    // A fifth came due during the pause, and another fifth comes due in as much time after it.
    let early = ticks.iter().filter(|(at, _)| *at <= ms(121_000)).count();
    let at_once = ticks.iter().filter(|(at, _)| *at < ms(100)).count();
    assert!(early >= 350 && at_once <= 10, "{at_once} of {early} at once");
    assert!(ticks.iter().all(|(_, missed)| *missed == 0), "no tick is skipped");
}

#[test]
fn a_blocking_ticker_skips_missed_ticks_too() {
    let late = HOUR + ms(15_000);
    let timer = Stopped { clock: VirtualClock::new(), late };
    let mut ticker = blocking::interval(ms(60_000), Ratio::ZERO, timer.clone()).spread(ms(30_000)).seed(Seed::new(3));
    let first = ticker.next().unwrap();
    assert_eq!(first.missed, 61);
    let slept = timer.clock.sleeps();
    assert_eq!(first.at.saturating_since(Instant::ZERO), slept[0] + late + slept[1]);
    assert_eq!(slept[1], ms(45_000));
}

#[test]
fn a_ticker_on_a_schedule_is_spread_again() {
    let tick = |seed| {
        let timer = Stopped { clock: VirtualClock::new(), late: HOUR };
        let retrier = Retrier::new(POLICY).seed(Seed::new(seed));
        let mut ticker = blocking::Ticker::with_timer(timer.clone(), retrier);
        let _ = ticker.next();
        let at = ticker.next().unwrap().at.saturating_since(Instant::ZERO);
        at - HOUR - timer.clock.sleeps()[0]
    };
    assert_spread(&(0..CALLS).map(tick).collect::<Vec<_>>());
}

#[test]
fn an_async_call_is_woken_by_its_second_timer() {
    // The timer that is armed again is polled at once, or nothing would wake the task.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut attempts = 0;
        let start = tokio::time::Instant::now();
        // With a seed, because one wait in a hundred is so short that it is not watched.
        let operation = || {
            attempts += 1;
            core::future::ready(if attempts == 2 { Ok(start.elapsed()) } else { Err("down") })
        };
        let mut call = pin!(IntoFuture::into_future(stagger::retry(&POLICY, operation).seed(Seed::new(1))));
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        tokio::time::advance(HOUR).await;
        let at = call.await.unwrap();
        assert!(at > HOUR && at <= HOUR + ms(10_001), "{at:?}");
    });
}
