//! Systems of services: which faults do they survive, and which retries keep them down?
//!
//! A system that still fails after its trouble is over is *metastable*: a trigger pushed it over, and retries, stale
//! work or an empty cache keep it there. Half of the effects that sustain such failures are retries between services,
//! which a simulation of [one server](crate::outage) cannot show.
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::{Seed, policy};
//! use stagger_sim::system::{Edge, Service, System, Trigger};
//!
//! let attempts = policy!(zero().max_attempts(3));
//! let service = |name: &str| Service::new(name).service_time(Duration::from_millis(2)).backlog(1_500);
//! let chain = |rate| {
//!     System::builder(rate)
//!         .service(service("gateway"))
//!         .service(service("orders"))
//!         .service(service("database"))
//!         .edge(Edge::from_users("gateway").policy(attempts))
//!         .edge(Edge::between("gateway", "orders").policy(attempts))
//!         .edge(Edge::between("orders", "database").policy(attempts))
//!         .trigger(Trigger::stall().on("database"))
//! };
//!
//! // Each service can serve 500 requests per second, and three attempts at three edges make 27.
//! let figures = chain(50.0).build()?.run(Seed::new(1));
//! assert!(figures.is_metastable());
//! assert!(figures.attempts_per_request(2) > 26.9);
//! assert!(!chain(10.0).build()?.run(Seed::new(1)).is_metastable());
//! # Ok::<(), stagger_sim::system::SystemError>(())
//! ```
//!
//! # The model
//!
//! - **Users** make requests open-loop, at random or at equal intervals. Each request belongs to one of their
//!   processes.
//! - A **[`Service`]** has workers with one queue. An attempt that finds the backlog full is refused at once. A worker
//!   takes the oldest attempt and works; then the service makes its calls, over its edges one after the other, and
//!   answers when they are done. A worker is free after its own work unless [workers are held](Service::hold_workers).
//! - An **[`Edge`]** has a time limit for each attempt, a one-way delay, a policy, and guards for each process.
//!   Policies and guards are those of [`stagger_core`], under a virtual clock. A full queue is
//!   [throttled](stagger_core::FailureKind::Throttled), every other failure transient. A call whose last attempt failed
//!   has failed, and the service that made it answers with an error, at once.
//! - An answer counts if it is back within the time limit, inclusive. What becomes of attempts whose callers have given
//!   up is the service's rule for [stale work](StaleWork).
//! - **[Triggers](Trigger)** affect a service or the users for a while; several make a sequence.
//! - At one instant, answers come before ends of service, time limits, workers that come back, delayed retries,
//!   arrivals, and new requests; among equals, what was scheduled first.
//!
//! # Verdicts
//!
//! The system is judged from the start of the first trigger, as an [outage](crate::outage::Verdict) is: by the requests
//! that came in a window, of which 90 % must be served in the end, and 95 % if there is a cache. Requests continue to
//! arrive after the horizon until those before it are settled.
//!
//! # Limits
//!
//! At most 16,777,216 calls and as many attempts are open at once; a call beyond that fails, and an attempt beyond it
//! is lost. A run takes memory in proportion to what is open. The example `three_tiers` of this crate measures the
//! speed.

mod calls;
mod curve;
mod definition;
mod edge;
mod figures;
#[cfg(feature = "toml")]
mod file;
mod frontier;
mod gain;
mod layout;
mod queue;
mod search;
mod service;
mod simulation;
mod state;
mod tries;
mod trigger;
mod workers;

pub use definition::{Arrivals, System, SystemBuilder, SystemError, SystemPart, SystemProblem};
pub use edge::{Cache, CallOrder, Edge, NestedCalls, Refusals};
pub use figures::{EdgeFigures, ServiceFigures, SystemFigures, SystemRecorder};
#[cfg(feature = "toml")]
pub use file::{FileNumber, FileProblem, SystemFile, SystemFileError, Unit};
pub use frontier::{Frontier, FrontierMap};
pub use gain::LoopGain;
pub use layout::{EdgeLayout, ServiceLayout, SystemLayout};
pub use search::Search;
pub use service::{Service, ServiceTimes, StaleWork};
pub use tries::{Border, BorderPoint, Found, Tried};
pub use trigger::Trigger;
