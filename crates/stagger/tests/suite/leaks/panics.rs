//! Calls interrupted from inside: a function of the caller panics.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;
use std::sync::Arc;

use super::{Driver, PanicPoint, for_each_guard};
use crate::suite::support::{PendingTimer, poll_times};

/// Panics at the first, the second and each further point of `panic_point`, and drops the calls.
fn panic_at_each_point(drivers: &[Driver], panic_point: fn(u64) -> PanicPoint) {
    for_each_guard(drivers, |driver, new_fixture| {
        for nth in 1.. {
            let fixture = new_fixture(panic_point(nth));
            let mut calls = Box::pin(driver.drive(Arc::clone(&fixture), PendingTimer::default()));
            let result = catch_unwind(AssertUnwindSafe(|| poll_times(calls.as_mut(), 1_000)));
            drop(calls);
            fixture.expect_settled("panicked");
            if let Ok(result) = result {
                assert!(result.is_ready(), "{driver:?} never completes");
                assert!(nth > 1, "{driver:?} never reached {:?}", panic_point(1));
                break;
            }
        }
    });
}

fn all_drivers() -> Vec<Driver> {
    [&Driver::ASYNC[..], &Driver::BLOCKING].concat()
}

#[test]
fn a_panicking_attempt_leaks_no_permits() {
    panic_at_each_point(&all_drivers(), PanicPoint::Attempt);
}

#[test]
fn an_operation_panicking_before_its_future_leaks_no_permits() {
    panic_at_each_point(&all_drivers(), PanicPoint::BeforeFuture);
}

#[test]
fn a_panicking_classifier_leaks_no_permits() {
    panic_at_each_point(&all_drivers(), PanicPoint::Classifier);
}

#[test]
fn a_panicking_listener_leaks_no_permits() {
    let with_listener: Vec<_> = all_drivers().into_iter().filter(|driver| driver.has_listener()).collect();
    panic_at_each_point(&with_listener, PanicPoint::Listener);
}
