//! The policy language, durations as text, and the error of everything that is parsed from text.
//!
//! The policy language, the command line and configuration files share the grammar.

mod duration;
mod error;
mod hint_mode;
mod jitter;
mod nearest;
mod policy;
mod ratio;
#[cfg(feature = "serde")]
mod serde;
mod setting;

pub use duration::{Compact, parse_duration};
pub use error::ParseError;
pub(crate) use error::Problem;
#[doc(hidden)]
pub use nearest::nearest;
