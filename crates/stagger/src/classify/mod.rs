//! Classifiers that decide whether an error is transient, throttled, local exhaustion or permanent.
//!
//! They take wire values, so that no client library's type appears in a signature. A typed rule is one line:
//!
//! ```
//! use stagger::classify;
//! # #[derive(Debug)] struct SqlError { code: Option<&'static str> }
//! let rule = |error: &SqlError| error.code.map_or(stagger::Outcome::TRANSIENT, classify::sqlstate);
//! assert_eq!(rule(&SqlError { code: Some("23505") }), stagger::Outcome::Permanent);
//! ```

pub(crate) mod built_in;
mod codes;
mod io;
pub(crate) mod marked;
pub(crate) mod rule;

pub use built_in::{built_in, chain, error};
pub use codes::{grpc, mongodb, mysql, redis, sqlite, sqlstate};
pub use io::io;

pub use crate::error::links::{links, provide_stop_reason};
