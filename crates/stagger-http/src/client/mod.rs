//! What every client's integration has in common: which requests are sent again, what is made of an answer, and what an
//! attempt tells the server.

mod failure;
mod fresh;
mod judge;
mod leftover;
mod progress;
mod settings;
mod steps;

pub use failure::StatusFailure;
pub(crate) use fresh::poll_fresh;
pub(crate) use judge::{Kept, is_success};
pub(crate) use leftover::{Leftover, poll_begin};
#[cfg(feature = "reqwest-middleware")]
pub(crate) use progress::Head;
pub(crate) use progress::{Progress, mark};
pub(crate) use settings::{Header, Renewing, Settings};
pub(crate) use steps::steps;
