//! What a run says: to people on a terminal, in `key=value` lines, or in JSON.

mod console;
mod event;
mod json;
mod key_value;
mod line;
mod live;
mod people;

pub(super) use console::{Console, LogSettings};
pub(super) use event::{Count, Done, Event, Next, Started, Tried};
pub(super) use json::{Attempt as JsonAttempt, Ending as JsonEnding};
pub(super) use live::Scene;
