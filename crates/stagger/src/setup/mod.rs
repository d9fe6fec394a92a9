//! The options of a call besides its policy and its operation. Each has a zero-sized default, so a plain call pays
//! nothing for them.

mod extras;
mod guarding;
mod limiting;
mod mode;
mod parts;

pub(crate) use extras::{Extras, Listening};
pub(crate) use guarding::{Guarded, Guarding, Hold, Lender, Lent, Stage};
pub use limiting::LastAttempt;
pub(crate) use limiting::{IsLast, Limiting, Limits};
pub(crate) use mode::{Bare, End, Ending, Explained, Finish, Keep, Own, Reported};
pub(crate) use parts::{Explaining, Setup};
