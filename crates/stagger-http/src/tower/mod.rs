//! Tower layers for services of `http` requests: [`RetryLayer`] for clients; [`CallerContextLayer`] and [`AdmissionLayer`] for
//! servers.
//!
//! ```text
//! ready? → clone → call ──→ answer ──→ success? → done
//!                   ↑                  ↓ no
//!        ready? ← sleep ← body let go ← another attempt?
//! ```
//!
//! - Readiness is obeyed: before every attempt the service is asked, and none is held while waiting.
//! - What must not be repeated is not: see [`Idempotency`](crate::Idempotency).
//! - What the server says about coming back is kept to: see [`advice`](crate::hint).
//! - Calls that are made inside an attempt stand down: see [`stagger::scope`], and [`CallerContextLayer`] for the next hop.
//! - From the second attempt on, and in any that has a limit of time, the request has an [`Attempt`](stagger::Attempt) among
//!   its extensions.
//! - A [`Deadline`](crate::Deadline) among the request's extensions limits the call, and can be told to the next hop.
//! - An appointment that an [`AdmissionLayer`] has given is kept, and its ticket brought along.
//! - The last answer is given as it came, whatever its status; errors of the service are kept as they are.

mod admission;
mod caller_context;
mod error;
mod future;
mod layer;
mod replay;
mod replayable_request;
mod saved_head;
mod service;
mod settings;

pub use admission::{AdmissionFuture, AdmissionLayer, AdmissionService};
pub use caller_context::{CallerAttempt, CallerContextFuture, CallerContextLayer, CallerContextService};
pub use error::Error;
pub use future::ResponseFuture;
pub use layer::RetryLayer;
pub use replay::ReplayBody;
pub use service::RetryService;
