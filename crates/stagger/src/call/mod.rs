//! One call: its state, its decisions, the options that they consult, and the permits that it holds. A driver only
//! waits and polls.

pub(crate) mod coop;
pub(crate) mod fast_path;
pub(crate) mod machine;
mod not_before;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod permits;
pub(crate) mod poll;
#[cfg(feature = "queue")]
pub(crate) mod queued;
pub(crate) mod retrier_options;
pub mod scope;
mod wait;
