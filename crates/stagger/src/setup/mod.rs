//! What a call brings along besides its policy and its operation. Every part has a form of size zero, which is the
//! default, so a plain call pays for none of them.

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
