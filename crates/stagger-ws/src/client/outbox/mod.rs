//! The outbox: messages that wait to be sent.

mod config;
mod error;
mod queue;

pub use config::Outbox;
pub use error::{SendError, SendErrorKind};
pub(super) use queue::{Completion, Enqueue, LinkState, OutboxQueue, enqueue, wake};
