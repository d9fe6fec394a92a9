//! What the errors of database clients mean for a retry: rules for a [`Retrier`](stagger::Retrier), each behind the feature
//! with the client's name.
//!
//! What the servers' own codes mean is told by [`stagger::classify`], which needs no client; here is what else a client has
//! to say: a lost connection, a pool that has none left, a reply that is no reply.
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
//! **What is run again is run from the beginning**, the whole transaction and not its last statement, on a connection that
//! the pool gives then. And what was lost while it committed may have been committed: give an effect a key that the database
//! keeps unique, or it may be there twice.

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
