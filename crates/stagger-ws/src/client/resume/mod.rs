//! Going on where the last connection left off.

mod greeting;
mod position;

pub(super) use greeting::Resuming;
pub use position::{Resume, ResumeStatus};
pub(super) use position::{SharedResume, asking};
