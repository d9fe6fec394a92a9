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
mod grpc;
mod io;
pub(crate) mod marked;
mod mongodb;
mod mysql;
mod redis;
pub(crate) mod rule;
pub(crate) mod rules;
mod sqlite;
mod sqlstate;

pub use built_in::{built_in, chain, error};
pub use grpc::grpc;
pub use io::io;
pub use mongodb::mongodb;
pub use mysql::mysql;
pub use redis::redis;
pub use sqlite::sqlite;
pub use sqlstate::sqlstate;

pub use crate::error::links::links;
pub use crate::error::stop::provide_stop_reason;
