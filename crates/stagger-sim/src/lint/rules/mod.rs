//! The rules, those that look at the same thing in one file. How to add one: CONTRIBUTING.md.

mod base;
mod cap;
mod connection;
mod effect;
mod fleet;
mod hint;
mod jitter;
mod limit;
mod list;
mod logs;
mod repeat;

pub(super) use list::{ALL, OF_LOGS};
pub(super) use logs::{BEYOND_BOUNDS, IN_STEP, NOT_THE_POLICY, TOGETHER, WITHOUT_END};
