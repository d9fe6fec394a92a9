//! Test utilities for real processes and real servers, and for calls in virtual time.
//!
//! Unpublished: used by the workspace's own tests. Processes and servers need Unix.
//!
//! | item | purpose |
//! |---|---|
//! | [`Program`], [`Running`], [`Finished`] | run a program as a child process: its output, signals, leaked processes |
//! | [`Server`], [`Ready`] | a server that can be killed with SIGKILL and restarted on the same port |
//! | [`Port`] | a reserved TCP port, kept across restarts |
//! | [`raise_descriptor_limit`], [`SourcePorts`] | the limits for many connections; errors say how to raise them |
//! | [`Ledger`], [`Tally`] | durable records; checks that each effect happened exactly once |
//! | [`User`], [`Postgres`], [`Mariadb`] | servers that refuse to run as root |
//! | [`poll_times`], [`assert_uniform`] | poll a future by hand; check the distribution of random delays |
//! | `World`, `explore`, `walk`, `assert_found`, with the feature `explore` | a model's states; what breaks it |
//! | `assert_published_schema`, with the feature `schema` | the schema of what is printed is the published one |
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
//! Child processes do not outlive their test: each child leads its own process group, and when its handle is dropped,
//! the group and all other descendants of the child are killed; if the test itself is killed, a watchdog kills the
//! groups. Tests may run in parallel.

mod checks;
#[cfg(feature = "explore")]
mod explore;
mod ledger;
#[cfg(unix)]
mod limits;
#[cfg(unix)]
mod mariadb;
#[cfg(unix)]
mod postgres;
#[cfg(unix)]
mod process;
#[cfg(unix)]
mod server;
mod tally;
#[cfg(feature = "timers")]
mod timers;

#[cfg(feature = "schema")]
pub use crate::checks::assert_published_schema;
pub use crate::checks::{assert_uniform, poll_times};
#[cfg(feature = "explore")]
pub use crate::explore::{World, assert_found, explore, walk};
pub use crate::ledger::Ledger;
#[cfg(unix)]
pub use crate::limits::{ResourceError, SourcePorts, raise_descriptor_limit};
#[cfg(unix)]
pub use crate::mariadb::Mariadb;
#[cfg(unix)]
pub use crate::postgres::Postgres;
#[cfg(unix)]
pub use crate::process::capture::Stream;
#[cfg(unix)]
pub use crate::process::process_tree::LeakedProcess;
#[cfg(unix)]
pub use crate::process::program::{Program, User};
#[cfg(unix)]
pub use crate::process::running::{Finished, Running};
#[cfg(unix)]
pub use crate::server::{Port, Ready, Server};
pub use crate::tally::{Miscount, Tally};
#[cfg(feature = "timers")]
pub use crate::timers::{PanickingTimer, PendingSleep, PendingTimer};
/// A signal for [`Running::signal`].
#[cfg(unix)]
pub use rustix::process::Signal;
