//! Optimistic concurrency: everyone writes one row, and of those who read the same version one is let through.
//!
//! # The model
//!
//! That of the AWS article's simulator. There is no capacity and no queue: all that makes an attempt fail is that somebody
//! else was faster.
//!
//! - All clients begin at once, each has one write to make, and stops when it is made.
//! - A client reads the version of the row, and when it has the answer writes with that version. The write succeeds if the
//!   row still has it, and raises it. When the client hears that it failed, it asks its policy, and reads again.
//! - A message is underway for a time that is normally distributed, each message anew; its absolute value, where that is
//!   negative.
//!
//! Source: M. Brooker, aws-samples/aws-arch-backoff-simulator, 2015. Differs from it in: time is counted in microseconds,
//! and the strategies are whatever policies say. Its own are `exponential base=10ms cap=2s` with jitter `none`, `full` and
//! `equal` (it counts the first failure as 1, so its first window is 10 ms and not the 5 ms it is set to), the profile
//! `aws-blog` for decorrelated jitter, and `zero`.
//!
//! # Limits
//!
//! With W the time of two messages, one write is made in W at most, so everyone needs W for each client, and one attempt for
//! each. Without knowing of each other clients cannot have both: attempts that come by chance at a rate of ρ in W make
//! `c = 1 + ρ` attempts and take `τ = (1 + ρ) / ρ` times W for each write, so `(c − 1)(τ − 1)` is 1 at best.
//! [`OccFigures::to_limit`] says how far a policy is from that.

mod figures;
mod scenario;
mod simulation;

pub use figures::OccFigures;
pub use scenario::{OccScenario, OccScenarioBuilder};
