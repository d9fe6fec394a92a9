//! A policy on a command line: the flags that describe it, and its delays as a table, a picture or JSON.
//!
//! The program `stagger` is made of it, and so is what judges policies. [`PolicyArgs`](policy_args::PolicyArgs) are
//! flags for a program that uses clap, [`plan`] forecasts the delays of a policy, [`plot`] draws figures for a terminal
//! and as SVG, and [`output`] has what every command says to its user. Its interface follows the program and makes no
//! promise of its own.

#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "what only the program and the lab use is documented where it explains something"
)]

pub mod input;
pub mod output;
pub mod plan;
pub mod plot;
pub mod policy_args;
