//! `stagger simulate`: what policies do to a server, before they do it.

mod args;
mod command;
mod contender;
mod guards;
mod runs;
mod settings;
mod world;

pub(crate) use args::SimulateArgs;
pub(crate) use command::run;
