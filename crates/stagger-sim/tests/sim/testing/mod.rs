//! What users' tests see.

mod overload;
mod storm;

use core::fmt::Debug;
use core::panic::UnwindSafe;
use std::panic::catch_unwind;

/// What a test says that fails.
#[track_caller]
fn message<T: Debug>(test: impl FnOnce() -> T + UnwindSafe) -> String {
    let panic = catch_unwind(test).expect_err("the claim does not hold");
    panic.downcast_ref::<String>().expect("it says something").clone()
}
