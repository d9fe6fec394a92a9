//! A kit for tests against real processes and real servers.
//!
//! Not published, and for Unix: the workspace's own tests use it. What it gives:
//!
//! | part | for |
//! |---|---|
//! | [`Program`], [`Running`], [`Finished`] | a program as child process: its lines, its signals, what it left behind |
//! | [`Server`], [`Ready`] | a server that is killed with SIGKILL and started again where it was |
//! | [`Port`] | a TCP port that nobody else is given, held across restarts |
//! | [`raise_descriptor_limit`], [`SourcePorts`] | is there room for so many connections, and if not, what to do |
//! | [`Ledger`], [`Tally`] | what was acknowledged is on disk; checks that each effect happened exactly once |
//! | [`User`], [`Postgres`] | servers that refuse to run as root |
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
//! Nothing that a test starts outlives it: each child leads a process group of its own, and when its handle is dropped,
//! the group and whatever else descends from the child are killed; if the test itself is killed, a watcher kills the
//! groups. Tests may run in parallel.

mod capture;
mod descriptor_limit;
mod ledger;
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
mod user;
mod watchdog;

pub use crate::capture::Stream;
pub use crate::descriptor_limit::raise_descriptor_limit;
pub use crate::ledger::Ledger;
pub use crate::port::Port;
pub use crate::postgres::Postgres;
pub use crate::process_tree::LeakedProcess;
pub use crate::program::Program;
pub use crate::resource_error::ResourceError;
pub use crate::running::{Finished, Running};
pub use crate::server::{Ready, Server};
pub use crate::source_ports::SourcePorts;
pub use crate::tally::{Miscount, Tally};
pub use crate::user::User;
/// The signals that [`Running::signal`] sends.
pub use rustix::process::Signal;
