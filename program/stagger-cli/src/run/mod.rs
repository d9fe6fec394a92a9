//! `stagger run`: runs a command and retries it until it succeeds.
//!
//! `stagger_core::machine::RetryMachine` decides whether and when to retry; [`driver`] drives it. [`runner`] makes one
//! attempt at a time, and [`attempt`] supervises it: one thread waits for the command, its output, its time limit and
//! signals at once. [`classifier`] decides what the outcome of an attempt means, with what [`http`] knows of it, and
//! [`log`] reports it.

mod advice;
mod args;
mod attempt;
mod budget;
mod child;
mod classifier;
mod command;
mod driver;
mod fd;
mod hook;
mod http;
mod launch;
mod log;
mod outcome_set;
mod patterns;
mod process_tree;
mod runner;
mod settings;
mod signals;
mod status;
mod stdin;
mod stream;

pub(crate) use args::RunArgs;
pub(crate) use budget::StoreAddress;
pub(crate) use command::{die_by_signal, run};
pub(crate) use signals::{TERMINATING, is_ignored};
pub(crate) use status::SignalName;
