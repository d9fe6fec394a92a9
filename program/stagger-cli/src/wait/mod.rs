//! `stagger wait`: waits until ports, URLs, files, processes and commands are ready, then runs a command.
//!
//! [`probe`] makes one attempt for one target, bounded in time and bytes. [`poll`] repeats it as the policy decides,
//! through the driver that libraries use. [`session`] waits for all targets, or for any, until the time is over or a
//! signal arrives, and [`log`] tells what happens. [`command`] then replaces this process by the command.

mod args;
mod command;
mod failure;
mod log;
mod poll;
mod probe;
mod session;
mod settings;
mod target;

pub(crate) use args::WaitArgs;
pub(crate) use command::run;
