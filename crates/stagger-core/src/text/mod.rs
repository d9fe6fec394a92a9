//! The policy language, durations and amounts as text, and the errors of what is parsed from text.
//!
//! The policy language, the command line and configuration files share the grammar.

mod amount;
mod duration;
mod error;
mod outside;
mod policy;
#[cfg(feature = "serde")]
mod serde;
mod values;

pub use amount::{ParseValueError, Rate, parse_count, parse_number};
pub use duration::{Compact, parse_duration};
pub use error::ParseError;
pub(crate) use error::Problem;
#[doc(hidden)]
pub use error::nearest;
pub use outside::Outside;
#[doc(hidden)]
pub use policy::backoff_names;
#[doc(hidden)]
pub use values::jitter_names;
