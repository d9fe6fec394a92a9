//! `stagger drill outage`: a real server that stalls under steady load from real clients, compared with its simulation.
//!
//! The server is another process, with workers and a bounded queue. The clients retry with `stagger`, over hyper.
//! What they recorded is judged by the simulator's code.

mod charts;
mod client;
mod command;
mod document;
mod report;
mod run;
mod serve;
mod settings;

pub(super) use command::run;
pub use serve::{OutageServeArgs, serve};
