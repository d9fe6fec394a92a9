//! Resuming where the last connection ended.

mod handshake;
mod protocol;

pub(super) use handshake::ResumeHandshake;
pub use protocol::{Resume, ResumeStatus};
pub(super) use protocol::{SharedResume, with_position};
