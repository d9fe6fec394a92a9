//! The log of a run: for humans on a terminal, as `key=value` lines, or as JSON lines.

mod event;
mod human;
mod json;
mod key_value;
mod logger;
mod status_line;

pub(super) use event::{AttemptEnded, Count, Done, Event, NextStep};
pub(super) use json::Report;
pub(super) use logger::Logger;
pub(super) use status_line::Activity;
