//! Guards are asked in the order in which they were given, and no call goes on without one of them.

use std::sync::{Arc, Mutex};

use futures_lite::future::block_on;
use stagger::guard::MAX_GUARDS;
use stagger::hedge::{Hedge, hedge_with_timer};
use stagger::testing::VirtualClock;
use stagger::{Cause, Guard, Policy, Rejected, Retrier, StopReason, blocking, policy, retry_with_timer};

use crate::suite::entry_points::{HEDGED, RETRYING, Run, TICKERS};
use crate::suite::support::{Fail, Traced, ms};

const TWICE: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(2));
/// All orders of three guards.
const ORDERS: [[&str; 3]; 6] =
    [["a", "b", "c"], ["a", "c", "b"], ["b", "a", "c"], ["b", "c", "a"], ["c", "a", "b"], ["c", "b", "a"]];

type Log = Arc<Mutex<Vec<String>>>;

/// Returns what each step says to all guards, in this order.
fn steps(order: [&str; 3], steps: &[&str]) -> Vec<String> {
    steps.iter().flat_map(|step| order.map(|name| format!("{name} {step}"))).collect()
}

fn guards(order: [&'static str; 3], log: &Log) -> [Arc<Traced>; 3] {
    order.map(|name| Arc::new(Traced::new(name, log)))
}

/// Runs an entry point with these guards, and returns what they were asked.
fn asked(retrier: Retrier, order: [&'static str; 3], run: Run) -> Vec<String> {
    let log = Log::default();
    let guards = guards(order, &log);
    let retrier = guards.iter().fold(retrier, |retrier, guard| retrier.shared_guard(guard.clone()));
    run(&retrier.classify(Fail::outcome), &VirtualClock::new(), Fail::TRANSIENT);
    assert!(guards.iter().all(|guard| guard.in_flight() == 0));
    let asked = log.lock().unwrap();
    asked.clone()
}

/// An attempt, the decision to retry, and the second attempt, which is the last.
const CALL: [&str; 6] = ["first?", "made", "refuse?", "reserve", "retry?", "made"];

#[test]
fn every_entry_point_asks_the_guards_in_the_order_given() {
    for order in ORDERS {
        for (name, run) in RETRYING {
            assert_eq!(asked(Retrier::new(TWICE), order, run), steps(order, &CALL), "{name}");
        }
        // The first attempt of a hedged call is made without asking; its copies are asked for as retries are.
        let (copy, end) = (["made", "reserve", "retry?"], ["made"]);
        let want = steps(order, &[&copy[..], &copy, &end].concat());
        assert_eq!(asked(Retrier::new(TWICE), order, HEDGED.1), want, "{}", HEDGED.0);
        for (name, run) in TICKERS {
            assert!(asked(Retrier::new(TWICE), order, run).is_empty(), "{name}: a tick is not an attempt");
        }
    }
}

#[test]
fn guards_of_one_call_are_asked_behind_those_of_its_retrier_in_the_order_given() {
    const HEDGE: Hedge = Hedge::after(ms(10)).with_max_copies(1);
    let fails = || Err::<(), _>(Fail::TRANSIENT);
    for order in ORDERS {
        let log = Log::default();
        let [first, second, third] = guards(order, &log);
        let (second, third): (&dyn Guard, &dyn Guard) = (&*second, &*third);
        let (clock, retrier) = (VirtualClock::new(), Retrier::new(TWICE).shared_guard(first.clone()));
        let taken = || core::mem::take(&mut *log.lock().unwrap());

        retrier.blocking_call(|_| fails()).timer(&clock).guard(second).guard(third).run().unwrap_err();
        assert_eq!(taken(), steps(order, &CALL), "blocking_call");
        block_on(retrier.run_on(&clock, async || fails()).guard(second).guard(third)).unwrap_err();
        assert_eq!(taken(), steps(order, &CALL), "run");
        let mut call = retrier.call_on(&clock).guard(second).guard(third);
        while block_on(call.attempt(async { fails() })).is_none() {}
        drop(call);
        assert_eq!(taken(), steps(order, &CALL), "call");
        blocking::retry(&TWICE, fails).timer(&clock).guard(&*first).guard(second).guard(third).run().unwrap_err();
        assert_eq!(taken(), steps(order, &CALL), "blocking::retry");
        let call = retry_with_timer(&TWICE, &clock, async || fails()).guard(&*first).guard(second).guard(third);
        block_on(call).unwrap_err();
        assert_eq!(taken(), steps(order, &CALL), "retry");

        // A hedged call can be given its retrier before or after its guards.
        let want = steps(order, &["made", "reserve", "retry?", "made"]);
        let hedged = || hedge_with_timer(&HEDGE, clock.clone(), async || fails());
        block_on(hedged().retrier(&retrier).guard(second).guard(third)).unwrap_err();
        assert_eq!(taken(), want, "hedge");
        block_on(hedged().guard(second).guard(third).retrier(&retrier)).unwrap_err();
        assert_eq!(taken(), want, "hedge");
    }
}

#[test]
fn a_call_with_too_many_guards_makes_no_attempt_and_says_so() {
    let log = Log::default();
    let with =
        |count: usize| (0..count).fold(Retrier::new(TWICE), |retrier, _| retrier.guard(Traced::new("one", &log)));
    let makes = |retrier: &Retrier| retrier.blocking_call(|_| Ok::<_, Fail>(())).timer(VirtualClock::new()).run();
    assert!(makes(&with(MAX_GUARDS)).is_ok());
    let never = || -> Result<(), Fail> { unreachable!("no attempt is made") };
    let of_call = Traced::new("one", &log);
    let all = with(MAX_GUARDS);
    for error in [
        makes(&with(MAX_GUARDS + 1)).unwrap_err(),
        makes(&with(MAX_GUARDS + 5)).unwrap_err(),
        makes(&all.clone().controls(&stagger::control::RetryControls::new())).unwrap_err(),
        all.blocking_call(|_| never()).timer(VirtualClock::new()).guard(&of_call).run().unwrap_err(),
        block_on(all.run_on(VirtualClock::new(), async || never()).guard(&of_call).guard(&of_call)).unwrap_err(),
    ] {
        assert_eq!((error.stop_reason(), error.attempts()), (StopReason::TOO_MANY_GUARDS, 0));
        assert!(matches!(error.cause(), Cause::Rejected(Rejected::ByGuard { .. })), "{error:?}");
        assert!(format!("{error:#}").contains("it has more than 6 guards: give it fewer"), "{error:#}");
    }
    log.lock().unwrap().clear();
    for (name, run) in RETRYING {
        run(&with(MAX_GUARDS + 1), &VirtualClock::new(), Fail::TRANSIENT);
        assert!(log.lock().unwrap().is_empty(), "{name}");
    }
}
