//! Which policy, for whom: the decision tree of the field, and a search where there is something to compute.
//!
//! [`advise`] goes through the [`Question`]s that a good answer depends on: does the error go away by itself, may the
//! operation be carried out twice, what is it for, how many clients do it at once? Some answers end it: what is permanent is
//! not retried, and what is needed within milliseconds is hedged. The others lead to a policy, each with its [`Reason`].
//!
//! Where the clients and what their server takes are known, policies are tried in a mass disconnect
//! ([`reconnect`](crate::reconnect)): first by the mean field ([`fluid`](crate::fluid)) where there is one, then those that
//! nothing beats client by client, with the clients in [`ParetoFront::simulated`]. What comes out is a [`ParetoFront`]: for each of its
//! policies, whatever brings the clients back sooner makes the server's peak higher.
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
//!     .clients(NonZeroU64::new(10_000).expect("it is not 0"))
//!     .capacity(Rate::per_second(500.0).expect("it is above 0"));
//! let advice = advise(&Answers::from_context(fleet), Seed::new(1), &Progress::new())?;
//! assert_eq!(advice.recommendation(), Recommendation::Retry);
//! // No policy without a spread is on the front, and 20 s is what the server needs.
//! let policy = advice.policy().expect("it is worth retrying");
//! assert!(policy.spread().as_secs() >= 20);
//! let best = advice.front().expect("there was something to compute").best();
//! assert!(best.predicted.attempts_per_client < 1.5);
//! # Ok::<(), stagger_sim::ScenarioError>(())
//! ```

mod advice;
mod answers;
mod decision_tree;
mod evaluator;
mod pareto_front;
mod question;
mod rust_code;
mod search;
mod search_space;

pub use advice::{Advice, Reason, Recommendation, RecommendedGuards, advise};
pub use answers::{Answers, Transience};
pub use pareto_front::{Candidate, ParetoFront, Prediction};
pub use question::Question;
pub use rust_code::rust_code;
