//! `stagger serve`: a page on which two policies race against each other, for the browser of this machine.
//!
//! The server listens on the loopback interface only. It answers requests that name it as `localhost` or by its
//! address, from its own page or from no page, so that another site can neither read from it nor make it compute. The
//! engine, the findings and the advice are those of the other subcommands; nothing is read from or written to files.

mod command;
mod export;
mod jobs;
mod limits;
mod policy;
mod question;
mod race;
mod reply;
mod routes;

pub use command::{ServeArgs, run};
