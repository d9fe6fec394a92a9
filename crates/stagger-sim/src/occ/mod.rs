//! Optimistic concurrency control: all clients write one row, and of those that read the same version, one succeeds.
//!
//! # The model
//!
//! The model of the AWS article's simulator. The server has no capacity limit and no queue: an attempt fails only if
//! another client was faster.
//!
//! - All clients start at once. Each has one write to make, and stops when it has succeeded.
//! - A client reads the version of the row and, when it has the answer, writes with that version. The write succeeds if
//!   the row still has this version, and increments it. When the client learns that the write failed, it asks its
//!   policy and reads again.
//! - The delay of each message is normally distributed; a negative value is replaced by its absolute value.
//!
//! Source: M. Brooker, aws-samples/aws-arch-backoff-simulator, 2015. Differs from it in: time has a resolution of a
//! microsecond, and the strategies are policies. The strategies of the article are `exponential base=10ms cap=2s` with
//! jitter `none`, `full` and `equal` (it counts the first failure as 1, so its first window is 10 ms and not the
//! configured 5 ms), the profile `aws-blog` for decorrelated jitter, and `zero`.
//!
//! # Limits
//!
//! With W the time of two messages, at most one write succeeds per W, so all writes take at least W per client, and one
//! attempt per client. Clients that do not know of each other cannot reach both limits: attempts that arrive at random
//! with a rate of ρ per W lead to `c = 1 + ρ` attempts and `τ = (1 + ρ) / ρ` times W per write, so `(c − 1)(τ − 1)` is
//! at best 1. [`OccFigures::to_limit`] returns how far a policy is from that limit.

mod figures;
mod scenario;
mod simulation;

pub use figures::OccFigures;
pub use scenario::{OccScenario, OccScenarioBuilder};
