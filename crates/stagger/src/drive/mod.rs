//! The drivers: they wait and poll, and leave every decision to the call.

pub mod blocking;
mod calls;
pub(crate) mod future;
mod handlers;
pub(crate) mod operation;
#[cfg(target_has_atomic = "64")]
mod poll_quiet;
pub(crate) mod poll_retry;
#[cfg(not(target_has_atomic = "64"))]
mod poll_without_quiet;
pub(crate) mod retry_loop;
mod steps;
