//! `stagger drill`: a real mass disconnect, with real clients, sockets and signals, compared with its simulation.
//!
//! With `--client`, the clients are those of a command, and their figures are those that a server sees (`command_clients`).
//!
//! With `outage`, a server that stalls under steady load; the rest is about mass disconnects.
//!
//! Kills a server process to which thousands of `stagger-ws` clients are connected, and starts it again. The simulator's
//! code turns what the clients recorded into figures, in the simulator's document.

#![forbid(unsafe_code)]
#![allow(
    clippy::missing_errors_doc,
    clippy::must_use_candidate,
    reason = "the errors of a command are those that its user reads"
)]

mod args;
mod command;
mod command_clients;
mod compare;
mod drill;
mod fleet;
mod limits;
mod log;
mod machine;
mod observed;
mod outage;
mod report;
mod run;
mod serve;
mod server;
mod settings;

pub use args::DrillArgs;
pub use command::run;
pub use command_clients::{GuardArgs, guard};
pub use outage::{OutageServeArgs, serve as serve_outage};
pub use serve::{ServeArgs, serve};
