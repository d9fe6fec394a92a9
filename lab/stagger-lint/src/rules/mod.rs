//! The rules, one file per subject. CONTRIBUTING.md describes how to add one.

mod base;
mod budget;
mod cap;
mod ceiling;
pub(crate) mod config;
mod connection;
mod fleet;
mod hint;
mod idempotency;
mod jitter;
mod knocking;
mod limit;
mod list;
mod log;
mod no_effect;
mod queue;
pub(crate) mod system;

pub(super) use list::{ALL, OF_CONFIGS, OF_LOGS, OF_SYSTEMS};
pub(super) use log::{BEYOND_BOUNDS, ENDLESS_RETRIES, IN_STEP, POLICY_MISMATCH, SYNCHRONIZED};
