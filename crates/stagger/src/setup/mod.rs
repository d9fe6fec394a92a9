//! The options of a call besides its policy and its operation. Each has a zero-sized default, so a plain call pays
//! nothing for them.

mod guarding;
mod limiting;
mod options;
mod output;
mod parts;

pub(crate) use guarding::{Guarded, Guarding, HeldPermits, PermitGuard, PermitIssuer, PermitStage};
pub use limiting::LastAttempt;
pub(crate) use limiting::{IsLast, Limiting, Limits};
pub(crate) use options::{CallOptions, Listening};
pub(crate) use output::{Detailed, End, Ending, ErrorSlot, Finish, InnerError, Reported};
pub(crate) use parts::{DetailedSetup, Setup};
