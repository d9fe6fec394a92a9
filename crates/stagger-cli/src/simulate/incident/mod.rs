//! `stagger simulate @incident`: published incidents as models, without and with their cure.

mod catalog;
mod command;
mod comparison;
mod outcome;
mod picture;
mod printed;
mod reference;
mod report;

pub(super) use command::run;
pub(super) use reference::Reference;
