//! `stagger simulate system`: services that call each other, as a file describes them.

mod charts;
mod command;
mod document;
mod find;
mod report;

pub(super) use command::run;
