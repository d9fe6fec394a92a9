//! `stagger simulate`: what policies do to a server, before they do it.

mod args;
mod command;
mod guards;
mod runs;
mod scenario;
mod settings;
mod strategy;

pub(crate) use args::SimulateArgs;
pub(crate) use command::run;
