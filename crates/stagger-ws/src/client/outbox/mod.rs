//! The outbox: messages that wait to be sent.

pub(super) mod config;
pub(super) mod error;
pub(super) mod queue;
pub(super) mod unacked;
