//! `stagger simulate system`: services that call each other, as a file describes them.

mod charts;
mod command;
mod csv;
mod document;
mod find;
mod frontier;
mod html;
mod markdown;
mod metric;
mod range;
mod report;
mod tables;
mod words;

pub(super) use command::run;
