//! `stagger simulate`: predicts the load that policies put on a server.

mod args;
mod command;
mod guards;
mod incident;
mod race;
mod runs;
mod scenario;
mod settings;
mod strategy;
mod sweep;
mod system;

pub use args::{SimulateArgs, renamed};
pub use command::run;
pub(crate) use race::Race;
