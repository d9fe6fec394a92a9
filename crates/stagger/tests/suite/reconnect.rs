//! [`Reconnect`]: settled meaning 12 and the behavior around it.

use core::cell::{Cell, RefCell};
use core::pin::pin;
use std::sync::Arc;

use futures_lite::future::block_on;
use stagger::machine::{ReconnectPhase, ReconnectStep};
use stagger::observe::Action;
use stagger::reconnect::{Reconnect, ReconnectDriver};
use stagger::testing::{Recorder, VirtualClock};
use stagger::time::Clock as _;
use stagger::{Cause, DelaySource, Outcome, Policy, Rejected, Retrier, Seed, StopReason, policy};

use super::support::{Fail, PendingTimer, RecordingBreaker, RecordingBudget, ms, poll_times};

const POLICY: Policy = policy!(exponential(ms(10), secs(1)).jitter(Jitter::None).max_attempts(5).stable_after(ms(100)));
const SPREAD: Policy = policy!(exponential(ms(10), secs(1)).spread(ms(500)).stable_after(ms(100)));

/// Succeeds immediately.
async fn connects() -> Result<(), Fail> {
    Ok(())
}

/// Returns the wait in milliseconds after each of these connection lifetimes in milliseconds.
fn waits(policy: &Policy, lifetimes: &[u64]) -> Vec<u128> {
    let clock = VirtualClock::new();
    let mut connections = Reconnect::with_timer(&clock, Retrier::new(*policy).seed(Seed::new(1)), connects);
    block_on(async {
        for lifetime in lifetimes {
            connections.next().await.unwrap();
            clock.advance(ms(*lifetime));
        }
        connections.next().await.unwrap();
    });
    clock.sleeps().iter().map(core::time::Duration::as_millis).collect()
}

#[test]
fn meaning_12_a_stable_connection_resets_the_backoff() {
    assert_eq!(waits(&POLICY, &[100, 100, 5_000, 100]), [10, 10, 10, 10]);
}

#[test]
fn meaning_12_a_short_lived_connection_continues_the_backoff() {
    assert_eq!(waits(&POLICY, &[99, 0, 99, 50]), [10, 20, 40, 80]);
    assert_eq!(waits(&POLICY, &[99, 99, 100, 99]), [10, 20, 10, 20]);
}

#[test]
fn meaning_12_connections_are_stable_after_10_s_by_default() {
    let policy = POLICY.to_builder().never_stable().build().unwrap();
    assert_eq!(waits(&policy, &[9_999, 9_999, 10_000, 9_999]), [10, 20, 10, 20]);
}

#[test]
fn meaning_12_gives_up_on_a_connection_that_is_never_stable() {
    let clock = VirtualClock::new();
    let mut connections = Reconnect::with_timer(&clock, POLICY, connects);
    let error = block_on(async {
        loop {
            if let Err(error) = connections.next().await {
                break error;
            }
            clock.advance(ms(99));
        }
    });
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Attempts, 5));
    assert_eq!(error.cause(), &Cause::Rejected(Rejected::Lost), "no attempt to connect has failed");
}

#[test]
fn the_spread_is_applied_after_a_loss_and_not_at_start() {
    let mut spreads = Vec::new();
    for seed in (0..200).map(Seed::new) {
        let clock = VirtualClock::new();
        let mut connections = Reconnect::with_timer(&clock, Retrier::new(SPREAD).seed(seed), connects);
        block_on(connections.next()).unwrap();
        assert_eq!(clock.elapsed(), ms(0));
        for episode in 1..=2 {
            clock.advance(ms(200));
            block_on(connections.next()).unwrap();
            assert_eq!(clock.sleeps().len(), episode);
        }
        spreads.extend(clock.sleeps());
    }
    assert!(spreads.iter().all(|spread| *spread <= ms(500)));
    let mean = spreads.iter().sum::<core::time::Duration>() / 400;
    // Uniform on [0, 500 ms]: the mean of 400 draws has a standard deviation of 7.2 ms.
    assert!(mean.abs_diff(ms(250)) < ms(29), "{mean:?}");
}

/// A server that dies again soon after its restart must not meet all clients at once.
#[test]
fn a_fleet_whose_connections_were_young_returns_over_the_spread() {
    const YOUNG: Policy = policy!(exponential(ms(100), secs(30)).spread(secs(1)).max_attempts(10));
    let waits = (0..100).map(|seed| {
        let clock = VirtualClock::new();
        let retrier = Retrier::new(YOUNG).seed(Seed::new(seed));
        let mut connections = Reconnect::with_timer(&clock, retrier, connects);
        block_on(connections.next()).unwrap();
        clock.advance(ms(2_000));
        block_on(connections.next()).unwrap();
        clock.sleeps()[0]
    });
    let mut tenths = [0; 11];
    waits.for_each(|wait| tenths[(wait.as_millis() / 100) as usize] += 1);
    // Without a spread, all 100 are in the first tenth of a second; with it, 10 in each, and a standard deviation of 3.
    assert!(tenths.iter().all(|&clients| clients <= 22), "{tenths:?}");
}

#[test]
fn gives_up_with_the_last_error_and_starts_over_on_the_next_call() {
    let (clock, failures) = (VirtualClock::new(), Cell::new(7_u32));
    let connect = || {
        let left = failures.get();
        failures.set(left.saturating_sub(1));
        core::future::ready(if left == 0 { Ok(()) } else { Err(Fail::TRANSIENT) })
    };
    let mut connections = Reconnect::with_timer(&clock, POLICY, connect);
    let error = block_on(connections.next()).unwrap_err();
    assert_eq!(
        (error.stop_reason(), error.attempts(), error.error()),
        (StopReason::Attempts, 5, Some(&Fail::TRANSIENT))
    );
    assert_eq!((error.elapsed(), connections.phase()), (ms(150), ReconnectPhase::GivenUp(StopReason::Attempts)));

    block_on(connections.next()).unwrap();
    assert_eq!(clock.sleeps(), [10, 20, 40, 80, 10, 20].map(ms), "the new series starts at once, with the base delay");
}

#[test]
fn the_cause_of_a_loss_can_be_reported() {
    let clock = VirtualClock::new();
    let mut connections = Reconnect::with_timer(&clock, POLICY, connects);
    block_on(connections.next()).unwrap();
    connections.lost(Outcome::Permanent);
    let error = block_on(connections.next()).unwrap_err();
    assert_eq!((error.stop_reason(), error.cause()), (StopReason::Permanent, &Cause::Rejected(Rejected::Lost)));

    block_on(connections.next()).unwrap();
    connections.lost(Outcome::throttled(Some(stagger::ServerHint::Reserved(ms(321)))));
    block_on(connections.next()).unwrap();
    assert_eq!(clock.sleeps(), [ms(321)]);
    // The outcome applies to one loss only.
    block_on(connections.next()).unwrap();
    assert_eq!(clock.sleeps(), [ms(321), ms(20)]);
}

#[test]
fn rules_classify_errors_of_connecting() {
    let retrier = Retrier::new(POLICY).classify_exactly(|_: &&str| Outcome::Permanent);
    let mut connections = Reconnect::with_timer(VirtualClock::new(), retrier, async || Err::<(), _>("no"));
    let error = block_on(connections.next()).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), error.error()), (StopReason::Permanent, 1, Some(&"no")));
}

#[test]
fn next_resumes_the_same_wait_after_being_dropped() {
    let (timer, attempts) = (PendingTimer::default(), Cell::new(0));
    let connect = || {
        attempts.set(attempts.get() + 1);
        core::future::ready(if attempts.get() < 4 { Err(Fail::TRANSIENT) } else { Ok(()) })
    };
    let mut connections = Reconnect::with_timer(timer.clone(), POLICY, connect);
    for elapsed in [0, 4, 8] {
        assert!(poll_times(pin!(connections.next()), 1).is_pending());
        assert_eq!((attempts.get(), timer.clock.elapsed()), (1, ms(elapsed)), "no attempt during the wait");
        timer.clock.advance(ms(4));
    }
    // 12 ms of the 10 ms wait have passed, so the attempt is due. The next wait is 20 ms and is resumed partway.
    assert!(poll_times(pin!(connections.next()), 1).is_pending());
    assert_eq!((attempts.get(), connections.phase()), (2, ReconnectPhase::Waiting { until: at(32) }));
    timer.clock.advance(ms(15));
    block_on(connections.next()).unwrap();
    assert_eq!((attempts.get(), timer.clock.elapsed()), (4, ms(32 + 40)));
}

fn at(millis: u64) -> stagger::Instant {
    stagger::Instant::ZERO.saturating_add(ms(millis))
}

#[test]
fn guards_are_checked_before_each_attempt() {
    let (budget, clock) = (Arc::new(RecordingBudget::new(2)), VirtualClock::new());
    let fails = async || Err::<(), _>(Fail::TRANSIENT);
    let mut connections = Reconnect::with_timer(&clock, Retrier::new(POLICY).shared_guard(budget.clone()), fails);
    assert_eq!(block_on(connections.next()).unwrap_err().stop_reason(), StopReason::BUDGET);
    drop(connections);
    assert_eq!((budget.snapshot().recorded.len(), budget.in_flight()), (3, 0));

    let retrier = Retrier::new(POLICY).breaker(RecordingBreaker::open(ms(70)));
    let mut connections = Reconnect::with_timer(&clock, retrier, connects);
    let error = block_on(connections.next()).unwrap_err();
    let retry_in = ms(70) - clock.elapsed();
    let open = Rejected::ByGuard { guard: "breaker", retry_in };
    assert_eq!((error.stop_reason(), error.cause()), (StopReason::BREAKER, &Cause::Rejected(open)));
}

#[test]
fn blocking_reconnect_behaves_like_async() {
    let blocking = {
        let (clock, calls, seen) = (VirtualClock::new(), Cell::new(0), RefCell::new(Vec::new()));
        let connect = || {
            calls.set(calls.get() + 1);
            if calls.get() % 3 == 0 { Ok(()) } else { Err(Fail::TRANSIENT) }
        };
        let mut connections = Reconnect::with_timer(&clock, Retrier::new(SPREAD).seed(Seed::new(7)), connect);
        for _ in 0..5 {
            seen.borrow_mut()
                .push(connections.next_blocking().map_err(|error| (error.stop_reason(), error.attempts())));
            clock.advance(ms(150));
        }
        (clock.sleeps(), seen.into_inner())
    };
    let asynchronous = {
        let (clock, calls, seen) = (VirtualClock::new(), Cell::new(0), RefCell::new(Vec::new()));
        let connect = async || {
            calls.set(calls.get() + 1);
            if calls.get() % 3 == 0 { Ok(()) } else { Err(Fail::TRANSIENT) }
        };
        let mut connections = Reconnect::with_timer(&clock, Retrier::new(SPREAD).seed(Seed::new(7)), connect);
        for _ in 0..5 {
            seen.borrow_mut()
                .push(block_on(connections.next()).map_err(|error| (error.stop_reason(), error.attempts())));
            clock.advance(ms(150));
        }
        (clock.sleeps(), seen.into_inner())
    };
    assert_eq!(blocking, asynchronous);
    assert_eq!(asynchronous.1, [Ok(()); 5]);
}

#[test]
fn a_loss_is_reported_with_its_attempt_and_begins_an_episode() {
    let (clock, recorder) = (VirtualClock::new(), Recorder::new());
    let mut driver = ReconnectDriver::new(Retrier::new(POLICY).on_event(recorder.listener()), clock.clone());
    let _ = driver.reconnect_now();
    clock.advance(ms(5));
    assert_eq!(driver.opened(driver.generation()), ReconnectStep::Rest);
    clock.advance(ms(60_000));
    let _ = driver.ended::<()>(driver.generation(), Outcome::TRANSIENT, None);
    clock.advance(ms(10));
    let _ = driver.due();
    clock.advance(ms(3));
    let _ = driver.ended::<()>(driver.generation(), Outcome::TRANSIENT, None);
    let events: Vec<_> = recorder.events().iter().map(|event| (event.attempt, event.action, event.elapsed)).collect();
    let retry = |millis| Action::Retry { after: ms(millis), source: DelaySource::Schedule };
    assert_eq!(events, [(1, Action::Done, ms(5)), (1, retry(10), ms(0)), (1, retry(20), ms(13))]);
}

/// A connection without a limit does not give up, but tells.
#[test]
fn listeners_are_told_once_that_the_server_is_unreachable_and_again_when_it_lasts_twice_as_long() {
    const KEPT: Policy = policy!(constant(secs(1)).jitter(Jitter::None).unlimited_attempts());
    let (clock, recorder, failures) = (VirtualClock::new(), Recorder::new(), Cell::new(45_u32));
    let connect = || {
        let left = failures.get();
        failures.set(left.saturating_sub(1));
        core::future::ready(if left == 0 { Ok(()) } else { Err(Fail::TRANSIENT) })
    };
    let retrier = Retrier::new(KEPT).on_event(recorder.listener());
    let mut connections = Reconnect::with_timer(&clock, retrier, connect);
    block_on(connections.next()).unwrap();
    let reports: Vec<_> = recorder
        .events()
        .iter()
        .filter_map(|event| {
            let report = event.unreachable?;
            assert_eq!(report.attempts, event.attempt);
            Some((report.attempts, report.lasted.as_secs()))
        })
        .collect();
    assert_eq!(reports, [(10, 9), (19, 18), (37, 36)]);
    assert_eq!(recorder.events().len(), 46, "the report is part of the event of its attempt");
    assert_eq!(connections.unreachable(), None, "it is connected");
}

/// Returns a driver that has lost its connection, and the source of its wait.
fn waiting(policy: Policy, clock: &VirtualClock, seed: u64) -> (ReconnectDriver<VirtualClock>, DelaySource) {
    let mut driver = ReconnectDriver::new(Retrier::new(policy).seed(Seed::new(seed)), clock.clone());
    let _ = driver.reconnect_now();
    let _ = driver.opened(driver.generation());
    let ReconnectStep::Wait { source, .. } = driver.ended::<()>(driver.generation(), Outcome::TRANSIENT, None) else {
        panic!("a wait");
    };
    (driver, source)
}

// A process that was stopped, or a machine that slept: every timer that came due meanwhile fires at once.
#[test]
fn waits_that_ended_during_a_pause_are_spread_again() {
    const FLEET: Policy = policy!(exponential(ms(500), secs(30)).spread(secs(10)).unlimited_attempts());
    let clock = VirtualClock::new();
    let mut drivers: Vec<_> = (0..200).map(|seed| waiting(FLEET, &clock, seed)).collect();
    clock.advance(ms(3_600_000));
    let mut in_second = [0; 10];
    for (driver, source) in &mut drivers {
        let step = driver.timer_fired(*source);
        let ReconnectStep::Wait { after, until, source: DelaySource::Spread } = step else { panic!("{step:?}") };
        assert_eq!(driver.phase(), ReconnectPhase::Waiting { until });
        assert!(matches!(driver.due(), ReconnectStep::Wait { after: left, .. } if left == after));
        in_second[usize::try_from(after.as_secs()).unwrap()] += 1;
        *source = DelaySource::Spread;
    }
    assert!(in_second.iter().all(|number| (5..40).contains(number)), "{in_second:?}");
    clock.advance(ms(10_000));
    for (driver, source) in &mut drivers {
        assert!(matches!(driver.timer_fired(*source), ReconnectStep::Connect { .. }));
    }
}

// A busy runtime fires timers late, too.
#[test]
fn a_wait_that_ended_no_longer_ago_than_a_second_is_over() {
    const FLEET: Policy = policy!(constant(secs(20)).jitter(Jitter::None).spread(secs(10)).unlimited_attempts());
    const BRIEF: Policy = policy!(constant(secs(20)).jitter(Jitter::None).spread(ms(10)).unlimited_attempts());
    const NONE: Policy = policy!(constant(secs(20)).jitter(Jitter::None).unlimited_attempts());
    for (policy, late, is_over) in [
        (FLEET, 1_000, true),
        (FLEET, 1_001, false),
        (BRIEF, 1_000, true),
        (BRIEF, 1_001, false),
        (NONE, 3_600_000, true),
    ] {
        let clock = VirtualClock::new();
        let (mut driver, source) = waiting(policy, &clock, 1);
        let ReconnectPhase::Waiting { until } = driver.phase() else { panic!("a wait") };
        clock.advance(until.saturating_since(clock.now()) + ms(late));
        let step = driver.timer_fired(source);
        assert_eq!(matches!(step, ReconnectStep::Connect { .. }), is_over, "{policy} {late} ms late: {step:?}");
    }
}
