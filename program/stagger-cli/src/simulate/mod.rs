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

pub(crate) use args::{SimulateArgs, subjects};
pub(crate) use command::run;
pub(crate) use incident::{SystemIncident, mass_disconnects, system_incidents};
pub(crate) use race::Race;
pub(crate) use system::{Metric, VerdictEntry, failures, parse_conditions, seconds};
