//! `stagger drill`: a real mass disconnect, with real clients, sockets and signals, compared with its simulation.
//!
//! With `--client`, the clients are those of a command, and their figures are those that a server sees (`foreign`).
//!
//! With `outage`, a server that stalls under steady load; the rest is about mass disconnects.
//!
//! Kills a server process to which thousands of `stagger-ws` clients are connected, and starts it again. The simulator's
//! code turns what the clients recorded into figures, in the simulator's document.

mod agreement;
mod args;
mod client;
mod command;
mod compare;
mod counters;
mod fleet;
mod foreign;
mod limits;
mod log;
mod outage;
mod relay;
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
pub(crate) use foreign::{GuardArgs, guard};
pub(crate) use outage::{OutageServeArgs, serve as serve_outage};
pub(crate) use serve::{ServeArgs, serve};
