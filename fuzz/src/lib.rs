//! What must hold for every input: one module for each fuzz target.
//!
//! The targets themselves, in `targets/`, only hand the input over. A check that fails panics, and the fuzzer keeps
//! the input.

#![forbid(unsafe_code)]

pub mod decide;
pub mod duration_text;
mod guards;
pub mod http_advice;
pub mod log_text;
pub mod policy_text;
pub mod policy_values;
pub mod reservation_text;
mod values;
