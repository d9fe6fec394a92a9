//! `stagger drill`: a failure with a real server, real clients, sockets and signals, compared with its simulation.
//!
//! The scenario `reconnect` kills a server process to which thousands of `stagger-ws` clients are connected, and starts
//! it again. With `--client`, the clients are those of a command, and their figures are what a server sees of them. The
//! scenario `outage` stalls a server under steady load.
//!
//! The simulator's code turns what was recorded into figures, in the simulator's document.

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

pub use args::DrillArgs;
pub use command::run;
pub use command_clients::{GuardArgs, guard};
pub use outage::{OutageServeArgs, serve as serve_outage};
pub use serve::{ServeArgs, serve};
