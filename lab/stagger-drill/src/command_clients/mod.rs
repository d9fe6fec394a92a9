//! Clients of a command: programs of any language, which need not know of the drill.
//!
//! Everything is measured at the drill's server, or at a relay in front of the clients' own server.
//! The server cannot tell these clients apart, so any program can be drilled as it is. The figures of their simulation
//! are computed from what its server saw, so both rows lack the same: attempts while the server was down, and the
//! attempts of single clients.

mod load;
mod program;
mod run;

pub(super) use program::CommandLine;
pub use program::{GuardArgs, guard};
pub(super) use run::run;
