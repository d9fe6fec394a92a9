//! Settled meaning 11, for every guard, every driver and every way to end a call early: a call that is dropped at any
//! await, loses a race, times out or panics leaves no permit outstanding, and later calls see the guards as if it had
//! not been interrupted.
//!
//! [`budgets`] lists every budget with the snapshot it must show after the attempts made, each [driver](Driver) runs
//! with each budget and a breaker, and [`Fixture`] checks both guards afterwards. Tests of a single driver are in
//! [`single_driver`].

mod budgets;
mod driver;
mod fixture;
mod interrupted;
mod single_driver;

use std::sync::Arc;

use driver::Driver;
use fixture::{Fixture, PanicPoint};
use stagger::FailureKind;

/// Runs `test` for each driver with every budget and both kinds of failure.
fn for_each_guard(drivers: &[Driver], mut test: impl FnMut(Driver, &dyn Fn(PanicPoint) -> Arc<Fixture>)) {
    for &driver in drivers {
        for budget in budgets::ALL {
            for kind in [FailureKind::Transient, FailureKind::LocalExhaustion] {
                test(driver, &|panic_point| Arc::new(Fixture::new(driver, budget(), kind, panic_point)));
            }
        }
    }
}
