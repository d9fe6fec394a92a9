//! Properties that hold for every input, one module per fuzz target.
//!
//! The targets in `targets/` only pass the input on. A check that fails panics, and the fuzzer saves the input.

#![forbid(unsafe_code)]

pub mod config_text;
pub mod decide;
pub mod duration_text;
pub mod event_stream;
mod guards;
pub mod http_hints;
pub mod log_text;
pub mod policy_text;
pub mod policy_values;
pub mod reservation_text;
pub mod resume;
pub mod trace_text;
mod values;
