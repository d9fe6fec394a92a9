//! Going on where the last connection left off.

mod handshake;
mod protocol;

pub(super) use handshake::ResumeHandshake;
pub use protocol::{Resume, ResumeStatus};
pub(super) use protocol::{SharedResume, with_position};
