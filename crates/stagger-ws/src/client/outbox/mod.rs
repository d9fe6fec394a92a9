//! What is to be sent, while it waits for a connection.

mod config;
mod error;
mod queue;

pub use config::Outbox;
pub use error::{SendError, SendErrorKind};
pub(super) use queue::{Completion, Enqueue, LinkState, OutboxQueue, enqueue, wake};
