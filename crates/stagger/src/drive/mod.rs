//! The drivers: they wait and poll, and leave every decision to the call.

pub mod blocking;
mod calls;
pub(crate) mod future;
pub(crate) mod poll_retry;
pub(crate) mod retry_loop;
mod steps;
