//! `stagger drill`: a mass disconnect that really happens, with real clients, sockets and signals, beside its simulation.
//!
//! A server in a process of its own is killed under thousands of clients, which are the library's, and comes back. What the
//! clients saw is counted by the simulator's own code, into the simulator's own document.

mod args;
mod client;
mod command;
mod counters;
mod fleet;
mod limits;
mod log;
mod report;
mod run;
mod serve;
mod server;
mod settings;
mod status;
mod target;
mod timer_lag;
mod warnings;

pub(crate) use args::DrillArgs;
pub(crate) use command::run;
pub(crate) use serve::{ServeArgs, serve};
