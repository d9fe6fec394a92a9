//! Queues of pending retries: up to millions of items on one task with one timer.
//!
//! A sleeping task costs half a kilobyte and a timer entry of its own. Where thousands of items or connections wait at
//! the same time, as in a queue consumer or after the restart of a server with many clients, that is the largest cost
//! of retrying.
//!
//! | type | what it is | adds |
//! |---|---|---|
//! | [`Wheel`] | a timing wheel in a slab; instants are arguments | no clock, no timer |
//! | [`DelayQueue`] | the wheel with a timer | items when they are due |
//! | [`RetryQueue`] | the delay queue with a policy | decisions, guards |
//!
//! For a few concurrent calls, [`retry`](fn@crate::retry) is simpler and costs no more.

pub mod batch;
mod delay;
mod job;
mod restore;
mod retry;
mod slab;
mod wheel;

pub use delay::{DelayQueue, QueueSnapshot};
pub use job::{GaveUp, GiveUpReason, Job};
pub use restore::{Interrupted, Pending};
pub use retry::{Queued, RetryQueue};
pub use slab::{Key, QueueFull};
pub use wheel::Wheel;
