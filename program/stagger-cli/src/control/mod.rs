//! `stagger control`: shows and changes the operator controls in a file, which a program passes to
//! `RetryControls::apply`, or in Redis, which the processes of a fleet obey.
//!
//! The library parses every entry, so what is written is what a program accepts.

mod args;
mod command;
mod controls;
mod place;

pub(crate) use args::ControlArgs;
pub(crate) use command::run;
