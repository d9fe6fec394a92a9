//! Tests of the assertions for users' tests.

mod overload;
mod storm;
mod system;

use core::fmt::Debug;
use core::panic::UnwindSafe;
use std::panic::catch_unwind;

/// Returns the message of a failed assertion.
#[track_caller]
fn message<T: Debug>(test: impl FnOnce() -> T + UnwindSafe) -> String {
    let panic = catch_unwind(test).expect_err("the assertion fails");
    panic.downcast_ref::<String>().expect("the message is a string").clone()
}
