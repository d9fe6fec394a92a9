//! Retries in bulk: what waits for its next attempt, a million of it if need be, on one task with one timer.
//!
//! A task that sleeps costs half a kilobyte, and one timer entry each. Where thousands of items or connections wait at
//! the same time, as with the consumer of a queue or after the restart of a server with many clients, that is the most
//! expensive part of retrying.
//!
//! | | what it is | brings |
//! |---|---|---|
//! | [`Wheel`] | a timing wheel in a slab; instants are arguments | no clock, no timer |
//! | [`DelayQueue`] | the wheel with a timer | what is due, when it is due |
//! | [`RetryQueue`] | the delay queue with a policy | decisions, budget, breaker |
//!
//! For a few calls at a time, [`retry`](fn@crate::retry) is simpler, and as good.

mod delay;
mod full;
mod job;
mod lists;
mod pending;
mod retry;
mod slab;
mod snapshot;
mod stopped;
mod wheel;

pub use delay::DelayQueue;
pub use full::QueueFull;
pub use job::Job;
pub use pending::Pending;
pub use retry::{Queued, RetryQueue};
pub use slab::Key;
pub use snapshot::QueueSnapshot;
pub use stopped::{GaveUp, GiveUpReason};
pub use wheel::Wheel;
