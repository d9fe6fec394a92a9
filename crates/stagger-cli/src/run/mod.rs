//! `stagger run`: runs a command and retries it until it succeeds.
//!
//! `stagger_core::machine::RetryMachine` decides whether and when to retry; [`driver`] drives it. [`runner`] makes one attempt at a time,
//! and [`attempt`] supervises it: one thread waits for the command, its output, its time limit and signals at once.
//! [`classifier`] decides what the outcome of an attempt means, and [`log`] reports it.

mod args;

#[cfg(unix)]
mod advice;
#[cfg(unix)]
mod attempt;
#[cfg(unix)]
mod child;
#[cfg(unix)]
mod classifier;
#[cfg(unix)]
mod command;
#[cfg(unix)]
mod drain;
#[cfg(unix)]
mod driver;
#[cfg(unix)]
mod fd;
#[cfg(unix)]
mod hook;
#[cfg(unix)]
mod launch;
#[cfg(unix)]
mod line_matcher;
#[cfg(unix)]
mod log;
#[cfg(unix)]
mod outcome_set;
#[cfg(unix)]
mod process_tree;
#[cfg(unix)]
mod report;
#[cfg(unix)]
mod runner;
#[cfg(unix)]
mod settings;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod status;
#[cfg(unix)]
mod stdin;
#[cfg(unix)]
mod stdout_position;
#[cfg(unix)]
mod stream;
#[cfg(not(unix))]
mod unsupported;

pub(crate) use args::RunArgs;
#[cfg(unix)]
pub(crate) use command::run;
#[cfg(not(unix))]
pub(crate) use unsupported::run;
