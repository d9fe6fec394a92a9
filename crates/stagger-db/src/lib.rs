//! Retry rules for the errors of database clients: classifiers for a [`Retrier`](stagger::Retrier), each behind the
//! feature named for the client.
//!
//! [`stagger::classify`] classifies the error codes of the servers, and needs no client; the guide's page about
//! databases has a rule for seven more clients. This crate adds the errors that occur in the client: a lost connection,
//! an exhausted pool, a malformed reply.
//!
//! ```
//! # #[cfg(feature = "sqlx")] {
//! use stagger::{Policy, Retrier, policy};
//!
//! const POLICY: Policy = policy!(exponential(ms(100), secs(5)).max_attempts(8));
//!
//! let retrier = Retrier::new(POLICY).classify(stagger_db::sqlx);
//! # let _ = retrier;
//! # }
//! ```
//!
//! **Retry the whole transaction**, not its last statement, and acquire a connection from the pool for each attempt. A
//! transaction whose connection was lost during the commit may have been committed: to prevent duplicates, give each
//! effect a key with a unique constraint in the database.
//!
//! # Dependencies before 1.0
//!
//! The public interface contains types and traits of these. Each new minor version of one is incompatible with the one
//! before, so a release of this crate that moves to it is incompatible, too: it raises the minor version, from 1.0 on
//! the major version.
//!
//! | dependency | feature | in the interface |
//! |---|---|---|
//! | sqlx-core 0.9 | `sqlx` | `Error`, which sqlx 0.9 re-exports |

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "redis")]
mod redis_error;
#[cfg(feature = "sqlx")]
mod sqlx_error;

#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
pub use redis_error::redis;
#[cfg(feature = "sqlx")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlx")))]
pub use sqlx_error::sqlx;
