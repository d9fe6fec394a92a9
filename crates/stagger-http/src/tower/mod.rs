//! A tower layer that retries, for services of `http` requests.
//!
//! ```text
//! ready? → clone → call ──→ answer ──→ success? → done
//!                   ↑                  ↓ no
//!        ready? ← sleep ← body let go ← another attempt?
//! ```
//!
//! - Readiness is obeyed: before every attempt the service is asked, and none is held while waiting.
//! - What must not be repeated is not: see [`Repeat`](crate::Repeat).
//! - What the server says about coming back is kept to: see [`advice`](crate::advice).
//! - Calls that are made inside an attempt stand down: see [`stagger::scope`].
//! - The last answer is given as it came, whatever its status; errors of the service are kept as they are.

mod error;
mod failure;
mod future;
mod judge;
mod layer;
mod leftover;
mod replay;
mod service;
mod settings;

pub use error::Error;
pub use failure::StatusFailure;
pub use future::ResponseFuture;
pub use layer::RetryLayer;
pub use replay::ReplayBody;
pub use service::Retry;
