//! Outage: requests arrive continuously, and the server stalls for a while. Does it recover?
//!
//! # The model
//!
//! - Requests arrive at random (a Poisson process), each at one of a number of client processes. A process has one
//!   policy and its own guards: the budgets, breakers, quiet periods and pacers of [`stagger_core`], as in a real
//!   program ([`ProcessGuards`]). A budget may be one of the fleet ([`FleetBudget`]), whose processes share it through
//!   a store, which may be away, lose its data or be out of reach ([`StoreFaults`]). Leased tokens, by the protocol of
//!   `stagger-redis`, are in `stagger-lease` with its feature `sim`.
//! - Messages have a fixed one-way delay. A request makes one attempt, and further attempts as policy and guards allow.
//!   An attempt fails if no answer arrives within the timeout.
//! - The server has one queue and a fixed service time. If the queue is full, an attempt is rejected at once
//!   ([throttled](stagger_core::FailureKind::Throttled)). The server does not notice that a client has timed out: it
//!   processes every queued job, whether its result is still wanted or not.
//! - During an [outage](OutageKind) the server rejects all attempts, which are transient failures like those without an
//!   answer in time, or it stalls and the queue fills. A rejection may have a hint: a minimum delay for all clients. It
//!   is then throttled, as a 503 with `Retry-After` is.
//! - Requests continue to arrive after the horizon for the longest time that a call can take, at most for the length of
//!   the simulation, so that the last requests before the horizon are settled under the same load. Their successes
//!   count for the [verdict](Verdict); attempts and successes after the horizon are not recorded.
//!
//! # Limits and formulas
//!
//! No policy makes less than one attempt per request. If λ requests arrive per second and μ jobs are processed, a stall
//! of length T leaves `q = λ · T` jobs in the queue, and without retries new requests are served in time again after
//! `(q − μ · timeout) / (μ − λ)`. A storm sustains itself if jobs become stale in the queue, `queue / μ > timeout`, and
//! load exceeds capacity, `λ · (1 + r) > μ`, where `r` is the number of retries per request if nothing succeeds: the
//! retries of the policy, or what the budget allows. The system is then [metastable](OutageFigures::is_metastable): the
//! outage is over, but requests still fail. Every process has the initial allowance of its budget, so a large fleet has
//! a large total.

mod course;
mod figures;
mod guards;
mod scenario;
mod simulation;
mod verdict;

pub(crate) use course::{Course, Run};
pub use figures::OutageFigures;
pub(crate) use guards::Fleet;
pub use guards::{DefaultGuards, FleetBudget, FleetConditions, FleetRun, LeaseFigures, ProcessGuards, StoreFaults};
pub(crate) use scenario::longest_call;
pub use scenario::{OutageKind, OutageScenario, OutageScenarioBuilder};
pub use verdict::Verdict;
pub(crate) use verdict::{GOOD_PERCENT, JudgedWindows, shortest_horizon};
