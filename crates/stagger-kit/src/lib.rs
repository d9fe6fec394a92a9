//! Test utilities for real processes and real servers, and for calls in virtual time.
//!
//! Unpublished and Unix only: used by the workspace's own tests.
//!
//! | item | purpose |
//! |---|---|
//! | [`Program`], [`Running`], [`Finished`] | run a program as a child process: its output, signals, leaked processes |
//! | [`Server`], [`Ready`] | a server that can be killed with SIGKILL and restarted on the same port |
//! | [`Port`] | a reserved TCP port, kept across restarts |
//! | [`raise_descriptor_limit`], [`SourcePorts`] | check the limits for many connections; errors say how to raise them |
//! | [`Ledger`], [`Tally`] | durable records; checks that each effect happened exactly once |
//! | [`User`], [`Postgres`], [`Mariadb`] | servers that refuse to run as root |
//! | [`poll_times`], [`assert_uniform`] | poll a future by hand; check the distribution of random delays |
//! | `PendingTimer`, `PanickingTimer`, with the feature `timers` | interrupt a call during a sleep; forbid sleeps |
//!
//! ```
//! use core::time::Duration;
//! use stagger_kit::Program;
//!
//! let done = Program::find("sh")?.args(["-c", "echo hello; exit 3"]).run(Duration::from_secs(5))?;
//! assert_eq!((done.code(), done.stdout_text().as_str()), (Some(3), "hello\n"));
//! assert_eq!(done.leaked, []);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Child processes do not outlive their test: each child leads its own process group, and when its handle is dropped, the
//! group and all other descendants of the child are killed; if the test itself is killed, a watchdog kills the groups.
//! Tests may run in parallel.

mod capture;
mod descriptor_limit;
mod ledger;
mod mariadb;
#[cfg(feature = "timers")]
mod panicking_timer;
#[cfg(feature = "timers")]
mod pending_timer;
mod poll;
mod port;
mod postgres;
mod process_tree;
mod program;
mod resource_error;
mod running;
mod server;
mod source_ports;
mod tally;
mod uniform;
mod user;
mod watchdog;

pub use crate::capture::Stream;
pub use crate::descriptor_limit::raise_descriptor_limit;
pub use crate::ledger::Ledger;
pub use crate::mariadb::Mariadb;
#[cfg(feature = "timers")]
pub use crate::panicking_timer::PanickingTimer;
#[cfg(feature = "timers")]
pub use crate::pending_timer::{PendingSleep, PendingTimer};
pub use crate::poll::poll_times;
pub use crate::port::Port;
pub use crate::postgres::Postgres;
pub use crate::process_tree::LeakedProcess;
pub use crate::program::Program;
pub use crate::resource_error::ResourceError;
pub use crate::running::{Finished, Running};
pub use crate::server::{Ready, Server};
pub use crate::source_ports::SourcePorts;
pub use crate::tally::{Miscount, Tally};
pub use crate::uniform::assert_uniform;
pub use crate::user::User;
/// A signal for [`Running::signal`].
pub use rustix::process::Signal;
