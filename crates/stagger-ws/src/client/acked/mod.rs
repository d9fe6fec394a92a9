//! At-least-once delivery: unacknowledged messages are sent again.

pub(super) mod acks;
pub(super) mod client;
mod metrics;
pub(super) mod window;
