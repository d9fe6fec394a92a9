//! Recommends a retry policy: a decision tree, and a search if the fleet and its server are known.
//!
//! [`advise`] evaluates the answers to the [`Question`]s that a policy depends on: is the error transient, is the
//! operation idempotent, what is its purpose, how many clients execute it at once? Some answers rule out retries:
//! permanent errors are not retried, and calls with a deadline of milliseconds are hedged. All others lead to a policy,
//! each with its [`Reason`].
//!
//! If the number of clients and the capacity of their server are known, policies are evaluated in a mass disconnect
//! ([`reconnect`](crate::reconnect)): first with the fluid model ([`fluid`](crate::fluid)) where it applies, then the
//! non-dominated ones client by client, with [`ParetoFront::simulated_clients`] clients. The result is a
//! [`ParetoFront`]: any policy that recovers sooner than one of its policies has a higher peak at the server.
//!
//! ```
//! use core::num::NonZeroU64;
//! use stagger_core::Seed;
//! use stagger_sim::Progress;
//! use stagger_sim::advise::{Answers, Recommendation, advise};
//! use stagger_sim::lint::{DeploymentContext, Purpose, Rate};
//!
//! let fleet = DeploymentContext::default()
//!     .purpose(Purpose::Reconnecting)
//!     .clients(NonZeroU64::new(10_000).expect("the number is not 0"))
//!     .capacity(Rate::per_second(500.0).expect("the rate is above 0"));
//! let advice = advise(&Answers::from_context(fleet), Seed::new(1), &Progress::new())?;
//! assert_eq!(advice.recommendation(), Recommendation::Retry);
//! // The server needs 20 s to accept all clients, and no policy without a spread is on the Pareto front.
//! let policy = advice.policy().expect("the recommendation is to retry");
//! assert!(policy.spread().as_secs() >= 20);
//! let best = advice.front().expect("clients and capacity are known").best();
//! assert!(best.predicted.attempts_per_client < 1.5);
//! # Ok::<(), stagger_sim::ScenarioError>(())
//! ```

mod advice;
mod answers;
mod decision_tree;
mod evaluator;
mod guard_trial;
mod pareto_front;
mod question;
mod rust_code;
mod search;
mod search_space;

pub use advice::{Advice, Reason, Recommendation, advise};
pub use answers::{Answers, Transience};
pub use guard_trial::{GuardFigures, GuardTrial, RecommendedGuards};
pub use pareto_front::{Candidate, ParetoFront, Prediction};
pub use question::Question;
pub use rust_code::rust_code;
