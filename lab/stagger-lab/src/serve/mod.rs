//! `stagger serve`: a page on which two policies race against each other, for the browser of this machine.
//!
//! The server listens on the loopback interface only. It answers requests that name it as `localhost` or by its
//! address, from its own page or from no page, so that another site can neither read from it nor make it compute. The
//! engine, the findings and the advice are those of the other subcommands; nothing is read from or written to files.
//!
//! The page draws, and computes nothing: also forecasts, sentences and the times of single clients come from here, so
//! it cannot differ from the command line. A request is a `POST` of JSON, which another site cannot send without being
//! asked for its origin first. A simulation lives as long as its connection.

mod command;
mod export;
mod limits;
mod policy;
mod question;
mod race;
mod reply;
mod routes;

pub use command::{ServeArgs, run};
