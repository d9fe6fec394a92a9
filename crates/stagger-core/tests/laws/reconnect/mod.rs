//! `ReconnectMachine`, which keeps one connection open.

mod backoff;
mod ending;
mod exact_hints;
mod health;
pub(crate) mod link;
mod permits;
mod reports;
