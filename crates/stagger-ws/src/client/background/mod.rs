//! The client that a background task keeps connected.

pub(super) mod event;
mod event_buffer;
pub(super) mod handle;
mod inbox;
pub(super) mod stream;
mod task;
