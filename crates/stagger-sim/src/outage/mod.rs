//! Outage: requests come all the time, and a server stands still for a while. Does it come back?
//!
//! # The model
//!
//! - Requests come at random (a Poisson stream), each at one of a number of client processes. A process has one policy and
//!   guards of its own: the budgets and breakers of [`stagger_core`], as a program has them ([`Process`]).
//! - A message is underway for a fixed time. A request is an attempt, and as many more as policy and guards let there be. An
//!   attempt has failed when no answer has come within the time-out.
//! - The server has one queue and takes a fixed time for each job. Who finds the queue full is turned away at once
//!   ([throttled](stagger_core::FailureKind::Throttled)). It does not know that a client has stopped waiting: what is in the queue is
//!   done, wanted or not.
//! - In an [outage](Outage) it turns everyone away, or it stands still and the queue fills.
//!
//! # Limits and formulas
//!
//! No policy makes fewer attempts than one for each request. Where λ requests come in a second and μ jobs are done, a stall
//! of T leaves `q = λ · T` jobs in the queue, and without retries those who come are served in time again after
//! `(q − μ · timeout) / (μ − λ)`. A storm sustains itself if work goes stale in the queue, `queue / μ > timeout`, and more
//! comes than is done, `λ · (1 + r) > μ`, where `r` is the number of retries for each request when nothing succeeds: the
//! retries of the policy, or what the budget allows. Then it is [metastable](Figures::is_metastable): the outage is over and
//! nothing works. Each process has what its budget starts with, so a large fleet has a lot of it.

mod figures;
mod process;
mod scenario;
mod server;
mod traffic;

pub use figures::Figures;
pub use process::Process;
pub use scenario::{Outage, Scenario, ScenarioBuilder};
