//! Clients of a command: programs of any language, which need not know of the drill.
//!
//! Everything is measured at the drill's server, or at a relay in front of the clients' own server.

mod load;
mod program;
mod run;

pub(super) use program::CommandLine;
pub use program::{GuardArgs, guard};
pub(super) use run::run;
