//! At-least-once delivery: unacknowledged messages are sent again.

mod acks;
mod client;
mod metrics;
mod window;

pub(super) use acks::AckDelivery;
pub use acks::{Ack, Acks};
pub use client::{AckedClient, AckedHandle};
pub(super) use window::UnackedMessages;
