//! The stage in which an attempt is dropped decides how its permits are settled.

use core::future::poll_fn;
use core::pin::pin;
use std::sync::Arc;

use stagger::machine::ReconnectStep;
use stagger::reconnect::ReconnectDriver;
use stagger::testing::{NoSleep, VirtualClock};
use stagger::{Outcome, PollRetry, Retrier};

use super::fixture::POLICY;
use crate::suite::support::{RecordingBreaker, RecordingBudget, guarded, ms, poll_times};

/// A stage: its name, the steps that lead to it, the outcomes that the budget and the breaker have recorded after the
/// drop, and the number of permits that the budget got back.
type Stage<T> = (&'static str, &'static [fn(&mut T)], &'static [Outcome], &'static [Outcome], u32);

const FAILED: Outcome = Outcome::TRANSIENT;
const CANCELLED: Outcome = Outcome::Cancelled;
const SUCCESS: Outcome = Outcome::Success;

/// Drops a driver in each of these stages.
fn assert_settled_by_stage<T>(make: impl Fn(Retrier) -> T, stages: &[Stage<T>]) {
    for (name, steps, to_budget, to_breaker, released) in stages {
        let (budget, breaker) = (Arc::new(RecordingBudget::new(9)), Arc::new(RecordingBreaker::new(99, ms(1))));
        let mut driver = make(guarded(POLICY, &budget, &breaker));
        steps.iter().for_each(|step| step(&mut driver));
        drop(driver);
        let (seen, seen_by_breaker) = (budget.snapshot(), breaker.snapshot());
        assert_eq!((&*seen.recorded, seen.released), (*to_budget, *released), "{name}");
        assert_eq!(seen_by_breaker.recorded, *to_breaker, "{name}");
        assert_eq!((budget.in_flight(), breaker.in_flight()), (0, 0), "{name}");
    }
}

#[test]
fn a_call_settles_its_permits_by_the_stage_in_which_it_is_dropped() {
    type Call = PollRetry<NoSleep>;
    const BEGIN: fn(&mut Call) = |call| assert!(poll_times(pin!(poll_fn(|cx| call.poll_begin(cx))), 1).is_ready());
    const ATTEMPT: fn(&mut Call) = |call| call.attempt(|| ());
    const FAIL: fn(&mut Call) = |call| assert_eq!(call.failed::<()>(FAILED, None), None);
    assert_settled_by_stage(
        |retrier| PollRetry::new(&retrier, NoSleep),
        &[
            ("not started", &[], &[], &[], 0),
            ("first attempt admitted", &[BEGIN], &[], &[CANCELLED], 1),
            ("first attempt in progress", &[BEGIN, ATTEMPT], &[CANCELLED], &[CANCELLED], 0),
            ("waiting", &[BEGIN, ATTEMPT, FAIL], &[FAILED], &[FAILED], 1),
            ("retry admitted", &[BEGIN, ATTEMPT, FAIL, BEGIN], &[FAILED], &[FAILED, CANCELLED], 1),
            (
                "retry in progress",
                &[BEGIN, ATTEMPT, FAIL, BEGIN, ATTEMPT],
                &[FAILED, CANCELLED],
                &[FAILED, CANCELLED],
                0,
            ),
            ("ended", &[BEGIN, ATTEMPT, |call| call.succeeded()], &[SUCCESS], &[SUCCESS], 0),
        ],
    );
}

#[test]
fn a_reconnect_driver_settles_its_permits_by_the_stage_in_which_it_is_dropped() {
    type Driver = ReconnectDriver<VirtualClock>;
    const START: fn(&mut Driver) = |driver| assert!(matches!(driver.reconnect_now(), ReconnectStep::Connect { .. }));
    const END: fn(&mut Driver) = |driver| {
        let step = driver.ended::<()>(driver.generation(), FAILED, None);
        assert!(matches!(step, ReconnectStep::Wait { .. }), "{step:?}");
    };
    const RETRY: fn(&mut Driver) = |driver| {
        driver.clock().advance(ms(10));
        assert!(matches!(driver.due(), ReconnectStep::Connect { .. }));
    };
    const OPEN: fn(&mut Driver) = |driver| assert_eq!(driver.opened(driver.generation()), ReconnectStep::Rest);
    assert_settled_by_stage(
        |retrier| ReconnectDriver::new(retrier, VirtualClock::new()),
        &[
            ("idle", &[], &[], &[], 0),
            ("connecting", &[START], &[CANCELLED], &[CANCELLED], 0),
            ("waiting", &[START, END], &[FAILED], &[FAILED], 1),
            ("connecting again", &[START, END, RETRY], &[FAILED, CANCELLED], &[FAILED, CANCELLED], 0),
            ("open", &[START, OPEN], &[SUCCESS], &[SUCCESS], 0),
            ("waiting after a loss", &[START, OPEN, END], &[SUCCESS], &[SUCCESS], 1),
            ("closed", &[START, OPEN, ReconnectDriver::close], &[SUCCESS], &[SUCCESS], 0),
        ],
    );
}
