//! At-least-once delivery: unacknowledged messages are sent again.

pub(super) mod acks;
pub(super) mod client;
pub(super) mod window;
