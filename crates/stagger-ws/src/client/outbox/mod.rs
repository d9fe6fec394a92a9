//! What is to be sent, while it waits for a connection.

mod limits;
mod queue;
mod unsent;

pub use limits::Outbox;
pub(super) use queue::{Gate, Offer, Queue, Via, put, wake};
pub use unsent::{SendError, SendErrorKind};
