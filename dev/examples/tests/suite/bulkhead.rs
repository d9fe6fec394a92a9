//! The bulkhead of the examples: its own claims, under operator controls, and in the simulator. The suite of `stagger`
//! runs the same file at every entry point.

use core::future::{Future as _, pending};
use core::task::{Context, Waker};
use core::time::Duration;
use std::sync::Arc;

use stagger::budget::{ControlMode, Tokens};
use stagger::control::RetryControls;
use stagger::guard::{Answer, Ask, End, Guard as _, Permit};
use stagger::testing::VirtualClock;
use stagger::time::Tokio;
use stagger::{Instant, Outcome, Policy, Retrier, Seed, StopReason};
use stagger_sim::outage::{OutageFigures, OutageKind, OutageScenario, ProcessGuards};

use example::Bulkhead;

#[path = "../../bulkhead.rs"]
mod example;

const SECOND: Duration = Duration::from_secs(1);

fn ask(bulkhead: &Bulkhead, held: Permit, millis: u64) -> Answer {
    bulkhead.ask(Ask::FIRST, held, &Instant::from_nanos(millis * 1_000_000))
}

fn starts(answer: Answer) -> Permit {
    match answer {
        Answer::Go(permit) => permit,
        other => panic!("{other:?}"),
    }
}

fn waits(answer: Answer) -> Permit {
    match answer {
        Answer::Wait { permit, .. } => permit,
        other => panic!("{other:?}"),
    }
}

#[test]
fn attempts_wait_in_their_order_and_fail_after_a_time() {
    let bulkhead = Bulkhead::new(1, SECOND);
    let running = starts(ask(&bulkhead, Permit::NONE, 0));
    let first = waits(ask(&bulkhead, Permit::NONE, 0));
    let second = waits(ask(&bulkhead, Permit::NONE, 1));
    bulkhead.settle(running, End::Made(&Outcome::Success), &Instant::ZERO);
    // There is room for one, and it is not for who asks first.
    let second = waits(ask(&bulkhead, second, 2));
    let third = waits(ask(&bulkhead, Permit::NONE, 2));
    let running = starts(ask(&bulkhead, first, 3));
    assert_eq!(bulkhead.in_flight(), 1);
    assert_eq!(ask(&bulkhead, second, 1_001), Answer::No { retry_in: Duration::from_millis(10) });
    bulkhead.settle(running, End::Made(&Outcome::Cancelled), &Instant::ZERO);
    let running = starts(ask(&bulkhead, third, 1_001));
    bulkhead.settle(running, End::NeverMade, &Instant::ZERO);
    assert!(bulkhead.is_at_rest(&Instant::ZERO));
}

#[test]
fn an_operator_observes_it_before_it_is_enforced() {
    let (controls, clock) = (RetryControls::new(), VirtualClock::new());
    let api = Retrier::new(Policy::DEFAULT).named("api").guard(Bulkhead::new(0, SECOND)).controls(&controls);
    let call = || api.blocking_call(|_| Ok::<_, &str>("page")).timer(clock.clone()).run();
    controls.set("api", ControlMode::Observed);
    assert_eq!((call().is_ok(), clock.elapsed()), (true, Duration::ZERO));
    assert_eq!(controls.control("api").snapshot().would_have_rejected, 1);
    controls.set("api", ControlMode::Enforced);
    assert_eq!(call().unwrap_err().stop_reason(), StopReason::Guard("bulkhead"));
    assert_eq!(clock.elapsed(), SECOND);
}

#[test]
fn under_a_control_every_permit_is_given_back() {
    let (controls, bulkhead) = (RetryControls::new(), Arc::new(Bulkhead::new(1, SECOND)));
    let api = Retrier::new(Policy::DEFAULT).named("api").shared_guard(bulkhead.clone()).controls(&controls);
    for mode in ControlMode::ALL {
        controls.set("api", *mode);
        for _ in 0..3 {
            assert!(api.blocking(|| Ok::<_, &str>("page")).is_ok());
            // Dropped while its attempt is in progress.
            let mut call = Box::pin(api.run_on(Tokio, async || pending::<Result<(), &str>>().await));
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(bulkhead.in_flight(), 0, "{mode:?}");
    }
}

/// A server that answers nothing for ten seconds: 100 calls per second, each of which gives up after a second.
fn stalled(guards: impl Fn(Seed) -> ProcessGuards) -> OutageFigures {
    let scenario = OutageScenario::builder(100.0).capacity(300.0).queue(10_000).processes(2).timeout(SECOND);
    let scenario = scenario.outage(OutageKind::Stall, 10 * SECOND, 10 * SECOND).horizon(60 * SECOND).build().unwrap();
    scenario.run(&Policy::DEFAULT, guards, Seed::new(1))
}

#[test]
fn in_a_simulated_outage_no_more_attempts_start_than_it_lets_through() {
    let during =
        |figures: &OutageFigures| figures.attempts.counts()[105..195].iter().map(|n| u64::from(*n)).sum::<u64>();
    let (alone, with_budget) =
        (stalled(|_| ProcessGuards::none()), stalled(|_| ProcessGuards::none().budget(Tokens::new())));
    let held = stalled(|_| ProcessGuards::none().guard(Bulkhead::new(5, 2 * SECOND)).budget(Tokens::new()));
    assert!(during(&alone) > 2_000 && during(&with_budget) > 900, "{}, {}", during(&alone), during(&with_budget));
    // Five per second and process.
    assert!((80..=100).contains(&during(&held)), "{}", during(&held));
    assert!(held.held > 100 && held.rejected > 100, "{} held, {} rejected", held.held, held.rejected);
}
