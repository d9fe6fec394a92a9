//! HTTP retries that don't stampede: what is safe to repeat, when the server said, and nothing held while waiting.
//!
//! What a server says about coming back is read by [`advice`], what a status means by [`status`], and whether a request
//! may be sent twice by [`Repeat`].

pub mod advice;
mod repeat;
pub mod status;

pub use repeat::{IDEMPOTENCY_KEY, Repeat, Sent};
