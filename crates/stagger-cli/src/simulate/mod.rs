//! `stagger simulate`: what policies do to a server, before they do it.
//!
//! The simulator's document `stagger.storm/1` is all that a report knows: tables, pictures, CSV, Markdown and HTML read
//! their figures from it by name, so none of them can differ from the JSON.

mod args;
mod assertion;
mod chart;
mod charts;
mod command;
mod contender;
mod csv;
mod guards;
mod html;
mod interrupt;
mod markdown;
mod measure;
mod outputs;
mod progress;
mod record;
mod runs;
mod sampled;
mod settings;
mod summary;
mod svg;
mod words;
mod world;

pub(crate) use args::SimulateArgs;
pub(crate) use command::run;
