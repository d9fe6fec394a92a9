//! Clients of a command: programs of any language, which need not know of the drill.
//!
//! Everything is measured at the drill's server, or at a relay in front of the clients' own server.

mod guard;
mod load;
mod program;
mod run;
mod view;

pub use guard::{GuardArgs, guard};
pub(super) use program::CommandLine;
pub(super) use run::{ForeignClients, run};
pub(super) use view::{ServerView, simulate};
