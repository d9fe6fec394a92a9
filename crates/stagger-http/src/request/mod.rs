//! What is known about a request: whether it may be sent again, how far it got, and what its extensions say.

#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub(crate) mod extensions;
#[cfg(feature = "hyper")]
pub(crate) mod hyper;
pub(crate) mod idempotency;
pub(crate) mod progress;
#[cfg(any(feature = "object-store", feature = "opendal"))]
pub(crate) mod storage;
