//! `stagger simulate @incident`: published incidents as models, without and with their cure.

mod catalog;
mod command;
mod comparison;
mod mass_disconnect;
mod outcome;
mod picture;
mod printed;
mod reference;
mod report;
mod system_page;

pub(super) use command::run;
pub(crate) use mass_disconnect::mass_disconnects;
pub(super) use reference::Reference;
pub(crate) use system_page::{SystemIncident, system_incidents};
