//! The commands of the program `stagger` that judge policies: check, simulate, advise and serve, and what they add to
//! plan.
//!
//! The interface is that of the program; the rules are in `stagger-lint`, the simulators in `stagger-sim`.

#![forbid(unsafe_code)]
#![allow(
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    reason = "the errors of a command are those that its user reads"
)]

pub mod advise;
pub mod check;
pub mod plan;
pub mod serve;
pub mod simulate;
