//! `stagger simulate system`: services that call each other, as a file describes them.

mod charts;
mod command;
mod document;
mod figures;
mod find;
mod write;

pub(super) use command::run;
