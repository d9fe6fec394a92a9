//! From inside: something that the caller has given panics.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;

use super::{Driver, Trouble, with_every_guard};
use crate::suite::support::{PendingTimer, poll_times};

/// Has the first, the second and every further one of `trouble` panic; the calls end there, and are dropped.
fn each_one_panics(drivers: &[Driver], trouble: fn(u64) -> Trouble) {
    with_every_guard(drivers, |driver, world| {
        for nth in 1.. {
            let world = world(trouble(nth));
            let mut calls = Box::pin(driver.drive(Arc::clone(&world), PendingTimer::default()));
            let ended = catch_unwind(AssertUnwindSafe(|| poll_times(calls.as_mut(), 1_000)));
            drop(calls);
            world.expect_settled("panicked");
            if let Ok(ended) = ended {
                assert!(ended.is_ready(), "{driver:?} never ends");
                assert!(nth > 1, "{driver:?} has no {:?}", trouble(1));
                break;
            }
        }
    });
}

fn every() -> Vec<Driver> {
    [&Driver::ASYNC[..], &Driver::BLOCKING].concat()
}

#[test]
fn an_attempt_that_panics_halfway_leaks_nothing() {
    each_one_panics(&every(), Trouble::Attempt);
}

#[test]
fn an_operation_that_panics_before_it_gives_a_future_leaks_nothing() {
    each_one_panics(&every(), Trouble::Making);
}

#[test]
fn a_rule_that_panics_leaks_nothing() {
    each_one_panics(&every(), Trouble::Rule);
}

#[test]
fn a_listener_that_panics_leaks_nothing() {
    let telling: Vec<_> = every().into_iter().filter(|driver| driver.tells()).collect();
    each_one_panics(&telling, Trouble::Listener);
}
