//! Tower layers for services of `http` requests: [`RetryLayer`] for clients; [`CallerContextLayer`] and
//! [`AdmissionLayer`] for servers.
//!
//! ```text
//! ready? → clone → call ──→ response ──→ success? → done
//!                   ↑                    ↓ no
//!        ready? ← sleep ← drain the body ← retry?
//! ```
//!
//! - Readiness is respected: `poll_ready` is called before every attempt, and no readiness is held during backoff.
//! - A request that is not safe to retry is not retried: see [`Idempotency`](crate::Idempotency). What an error says is
//!   believed of the request that the layer sent. So a layer that follows redirects belongs above a [`RetryLayer`]:
//!   below it, a connection that is refused on the second hop looks like a request that was never sent.
//! - Server hints such as `Retry-After` are honored: see [`hint`](crate::hint). So are the reservations of an
//!   [`AdmissionLayer`]: the retry comes at the reserved time, with the reservation's token.
//! - Nested calls, made inside an attempt, do not retry: see [`stagger::scope`]. [`CallerContextLayer`] extends this to
//!   the next hop.
//! - From the second attempt on, and in any attempt with a time limit, the request's extensions contain an
//!   [`Attempt`](stagger::Attempt).
//! - A [`Deadline`](crate::Deadline) in the request's extensions limits the call, and can be propagated to the next
//!   hop.
//! - The last response is returned unchanged, whatever its status, and so are errors of the service.

mod admission;
mod caller_context;
mod future;
mod layer;
mod replay;
mod replayable_request;

pub use admission::{AdmissionFuture, AdmissionLayer, AdmissionService};
pub use caller_context::{CallerAttempt, CallerContextFuture, CallerContextLayer, CallerContextService};
pub use future::{Error, ResponseFuture};
pub use layer::{RetryLayer, RetryService};
pub use replay::ReplayBody;
