//! Settled meaning 11, for every guard, every driver and every way to end a call early: a call that is dropped at any
//! await, loses a race, times out or panics leaves no permit outstanding, and later calls see the guards as if it had
//! not been interrupted.
//!
//! [`budgets`] lists every budget with the snapshot it must show after the attempts made, each [driver](Driver) runs
//! with each budget in a [list](List) of one to four guards, and [`Fixture`] checks all of them afterwards. Tests of a
//! single driver are in [`single_driver`].

mod budgets;
mod driver;
mod fixture;
mod interrupted;
mod single_driver;

use std::sync::Arc;

use driver::Driver;
use fixture::{Fixture, List, PanicPoint};
use stagger::FailureKind;

/// Runs `test` for each driver with every budget and both kinds of failure, and with lists of every length.
fn for_each_guard(drivers: &[Driver], mut test: impl FnMut(Driver, &dyn Fn(PanicPoint) -> Arc<Fixture>)) {
    for &driver in drivers {
        let with_breaker = budgets::ALL.map(|budget| (budget, List::Two));
        let of_other_lengths = [List::One, List::Three, List::Four].map(|list| (budgets::ALL[5], list));
        for (budget, list) in with_breaker.into_iter().chain(of_other_lengths) {
            for kind in [FailureKind::Transient, FailureKind::LocalExhaustion] {
                test(driver, &|panic_point| Arc::new(Fixture::new(driver, budget(), list, kind, panic_point)));
            }
        }
    }
}
