//! Settled meaning 11, for every guard, every driver and every way to end a call early: a call that is dropped at any
//! await, loses a race, runs out of time or panics leaves nothing borrowed, and the calls after it find the guards as
//! they would be had nobody interfered.
//!
//! Each budget stands in a [table](budgets) with what it must say after so many attempts, each [driver] is run with each
//! of them and with a breaker, and what is asked afterwards is in [`World`]. What concerns one driver alone is in
//! [`apart`].

mod apart;
mod budgets;
mod driver;
mod interrupted;
mod panics;
mod world;

use driver::Driver;
use stagger::FailureKind;
use world::{Trouble, World};

use std::sync::Arc;

/// Runs every one of these drivers with every budget and both kinds of failure.
fn with_every_guard(drivers: &[Driver], mut test: impl FnMut(Driver, &dyn Fn(Trouble) -> Arc<World>)) {
    for &driver in drivers {
        for budget in budgets::EVERY {
            for kind in [FailureKind::Transient, FailureKind::LocalExhaustion] {
                test(driver, &|trouble| Arc::new(World::new(driver, budget(), kind, trouble)));
            }
        }
    }
}
