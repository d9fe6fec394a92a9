//! Keeping one connection up: settled meaning 12, and what happens around it.

use core::cell::{Cell, RefCell};
use core::pin::pin;

use futures_lite::future::block_on;
use stagger::testing::VirtualClock;
use stagger::{
    Cause, Guards, Outcome, Policy, Rejected, Seed, StopReason, machine::ReconnectPhase, policy, reconnect::Reconnect,
};

use super::support::{Bank, Fail, Gate, Patient, ms, polled};

const POLICY: Policy = policy!(exponential(ms(10), secs(1)).jitter(Jitter::None).max_attempts(5).stable_after(ms(100)));
const SPREAD: Policy = policy!(exponential(ms(10), secs(1)).spread(ms(500)).stable_after(ms(100)));

/// Connects at once, always.
async fn connects() -> Result<(), Fail> {
    Ok(())
}

/// The wait after each of these lives, in milliseconds.
fn waits(policy: &Policy, lives: &[u64]) -> Vec<u128> {
    let clock = VirtualClock::new();
    let mut links = Reconnect::with_seed(&clock, policy, connects, Seed::new(1));
    block_on(async {
        for life in lives {
            links.next().await.unwrap();
            clock.advance(ms(*life));
        }
        links.next().await.unwrap();
    });
    clock.sleeps().iter().map(core::time::Duration::as_millis).collect()
}

#[test]
fn meaning_12_a_connection_that_lived_long_enough_starts_the_backoff_again() {
    assert_eq!(waits(&POLICY, &[100, 100, 5_000, 100]), [10, 10, 10, 10]);
}

#[test]
fn meaning_12_one_that_did_not_goes_on_with_the_backoff() {
    assert_eq!(waits(&POLICY, &[99, 0, 99, 50]), [10, 20, 40, 80]);
    assert_eq!(waits(&POLICY, &[99, 99, 100, 99]), [10, 20, 10, 20]);
}

#[test]
fn meaning_12_unless_told_otherwise_ten_seconds_are_healthy() {
    let policy = POLICY.to_builder().never_stable().build().unwrap();
    assert_eq!(waits(&policy, &[9_999, 9_999, 10_000, 9_999]), [10, 20, 10, 20]);
}

#[test]
fn meaning_12_a_connection_that_never_lives_is_given_up() {
    let clock = VirtualClock::new();
    let mut links = Reconnect::with_timer(&clock, &POLICY, connects);
    let error = block_on(async {
        loop {
            if let Err(error) = links.next().await {
                break error;
            }
            clock.advance(ms(99));
        }
    });
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::Attempts, 5));
    assert_eq!(error.cause(), &Cause::Rejected(Rejected::Lost), "there is no error of connecting");
}

#[test]
fn the_first_connection_is_made_at_once_and_the_first_wait_after_a_loss_is_the_spread() {
    let mut spreads = Vec::new();
    for seed in (0..200).map(Seed::new) {
        let clock = VirtualClock::new();
        let mut links = Reconnect::with_seed(&clock, &SPREAD, connects, seed);
        block_on(links.next()).unwrap();
        assert_eq!(clock.elapsed(), ms(0));
        for episode in 1..=2 {
            clock.advance(ms(200));
            block_on(links.next()).unwrap();
            assert_eq!(clock.sleeps().len(), episode);
        }
        spreads.extend(clock.sleeps());
    }
    assert!(spreads.iter().all(|spread| *spread <= ms(500)));
    let mean = spreads.iter().sum::<core::time::Duration>() / 400;
    // Uniform on [0, 500 ms]: the mean of 400 has a standard deviation of 7.2 ms.
    assert!(mean.abs_diff(ms(250)) < ms(29), "{mean:?}");
}

#[test]
fn it_gives_up_with_the_last_error_and_begins_anew_when_it_is_asked_again() {
    let (clock, failures) = (VirtualClock::new(), Cell::new(7_u32));
    let connect = || {
        let left = failures.get();
        failures.set(left.saturating_sub(1));
        core::future::ready(if left == 0 { Ok(()) } else { Err(Fail::TRANSIENT) })
    };
    let mut links = Reconnect::with_timer(&clock, &POLICY, connect);
    let error = block_on(links.next()).unwrap_err();
    assert_eq!(
        (error.stop_reason(), error.attempts(), error.error()),
        (StopReason::Attempts, 5, Some(&Fail::TRANSIENT))
    );
    assert_eq!((error.elapsed(), links.phase()), (ms(150), ReconnectPhase::GivenUp(StopReason::Attempts)));

    block_on(links.next()).unwrap();
    assert_eq!(clock.sleeps(), [10, 20, 40, 80, 10, 20].map(ms), "at once, and from the base on");
}

#[test]
fn why_a_connection_was_lost_can_be_said() {
    let clock = VirtualClock::new();
    let mut links = Reconnect::with_timer(&clock, &POLICY, connects);
    block_on(links.next()).unwrap();
    links.lost(Outcome::Permanent);
    let error = block_on(links.next()).unwrap_err();
    assert_eq!((error.stop_reason(), error.cause()), (StopReason::Permanent, &Cause::Rejected(Rejected::Lost)));

    block_on(links.next()).unwrap();
    links.lost(Outcome::throttled(Some(stagger::ServerHint::Reserved(ms(321)))));
    block_on(links.next()).unwrap();
    assert_eq!(clock.sleeps(), [ms(321)]);
    // It holds for one loss.
    block_on(links.next()).unwrap();
    assert_eq!(clock.sleeps(), [ms(321), ms(20)]);
}

#[test]
fn a_rule_judges_the_errors_of_connecting() {
    let mut links = Reconnect::with_timer(VirtualClock::new(), &POLICY, async || Err::<(), _>("no"));
    let error = block_on(links.next_by(|_| Outcome::Permanent)).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts(), error.error()), (StopReason::Permanent, 1, Some(&"no")));
}

#[test]
fn dropped_in_the_middle_of_a_wait_it_goes_on_with_the_same_wait() {
    let (timer, attempts) = (Patient::default(), Cell::new(0));
    let connect = || {
        attempts.set(attempts.get() + 1);
        core::future::ready(if attempts.get() < 4 { Err(Fail::TRANSIENT) } else { Ok(()) })
    };
    let mut links = Reconnect::with_timer(timer.clone(), &POLICY, connect);
    for elapsed in [0, 4, 8] {
        assert!(polled(pin!(links.next()), 1).is_pending());
        assert_eq!((attempts.get(), timer.clock.elapsed()), (1, ms(elapsed)), "no attempt meanwhile");
        timer.clock.advance(ms(4));
    }
    // 12 ms of 10 have passed: it is due. The next wait is 20 ms, and is taken up in the middle.
    assert!(polled(pin!(links.next()), 1).is_pending());
    assert_eq!((attempts.get(), links.phase()), (2, ReconnectPhase::Waiting { until: at(32) }));
    timer.clock.advance(ms(15));
    block_on(links.next()).unwrap();
    assert_eq!((attempts.get(), timer.clock.elapsed()), (4, ms(32 + 40)));
}

fn at(millis: u64) -> stagger::Instant {
    stagger::Instant::ZERO.saturating_add(ms(millis))
}

#[test]
fn the_guards_are_asked_before_every_attempt() {
    let (bank, clock) = (Bank::of(2), VirtualClock::new());
    let fails = async || Err::<(), _>(Fail::TRANSIENT);
    let mut links = Reconnect::with_timer(&clock, &POLICY, fails).guards(Guards::none().budget(&bank));
    assert_eq!(block_on(links.next()).unwrap_err().stop_reason(), StopReason::Budget);
    drop(links);
    assert_eq!((bank.books().settled.len(), bank.in_flight()), (3, 0));

    let gate = Gate::open(ms(70));
    let mut links = Reconnect::with_timer(&clock, &POLICY, connects).guards(Guards::none().breaker(&gate));
    let error = block_on(links.next()).unwrap_err();
    let retry_in = ms(70) - clock.elapsed();
    let open = stagger::BreakerOpen { retry_in };
    assert_eq!(
        (error.stop_reason(), error.cause()),
        (StopReason::Breaker, &Cause::Rejected(Rejected::BreakerOpen(open)))
    );
}

#[test]
fn blocking_code_reconnects_alike() {
    let in_blocking = {
        let (clock, calls, seen) = (VirtualClock::new(), Cell::new(0), RefCell::new(Vec::new()));
        let connect = || {
            calls.set(calls.get() + 1);
            if calls.get() % 3 == 0 { Ok(()) } else { Err(Fail::TRANSIENT) }
        };
        let mut links = Reconnect::with_seed(&clock, &SPREAD, connect, Seed::new(7));
        for _ in 0..5 {
            seen.borrow_mut().push(links.next_blocking().map_err(|error| (error.stop_reason(), error.attempts())));
            clock.advance(ms(150));
        }
        (clock.sleeps(), seen.into_inner())
    };
    let in_async = {
        let (clock, calls, seen) = (VirtualClock::new(), Cell::new(0), RefCell::new(Vec::new()));
        let connect = async || {
            calls.set(calls.get() + 1);
            if calls.get() % 3 == 0 { Ok(()) } else { Err(Fail::TRANSIENT) }
        };
        let mut links = Reconnect::with_seed(&clock, &SPREAD, connect, Seed::new(7));
        for _ in 0..5 {
            seen.borrow_mut().push(block_on(links.next()).map_err(|error| (error.stop_reason(), error.attempts())));
            clock.advance(ms(150));
        }
        (clock.sleeps(), seen.into_inner())
    };
    assert_eq!(in_blocking, in_async);
    assert_eq!(in_async.1, [Ok(()); 5]);
}
