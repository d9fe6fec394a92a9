//! What ended an attempt or a connection, and what that means for the next one.

pub(super) mod classify;
pub(super) mod closed;
pub mod codes;
pub(super) mod connection_error;
pub(super) mod fatal;
pub(super) mod rejected;
mod tls;
