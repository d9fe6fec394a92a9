//! Recommends a retry policy: a decision tree, and a search if the fleet and its server are known.
//!
//! [`advise`] evaluates the answers to the [`Question`]s that a policy depends on: is the error transient, is the
//! operation idempotent, what is its purpose, how many clients execute it at once? Some answers rule out retries:
//! permanent errors are not retried, and calls with a deadline of milliseconds are hedged. All others lead to a policy,
//! each with its [`Reason`].
//!
//! If the number of clients and the capacity of their server are known, policies are evaluated in a mass disconnect
//! ([`reconnect`](stagger_sim::reconnect)), in which a connection waits before its first attempt and a call does not.
//! Without an answer for the outage, it is simulated with outages of 0 s to 10 minutes. Each policy is also judged on
//! lengths between and up to a quarter beyond these, and just after its own attempts, and the worst figures count.
//! The search draws policies from ranges that [`ParetoFront::searched`] states, refines the best, and simulates them
//! client by client, with [`ParetoFront::simulated_clients`] clients. At last, policies that are drawn anew compete
//! with the recommended one until none is better. The result is a [`ParetoFront`]: each policy is better than every
//! other one in peak, recovery time, attempts or recovered clients.
//!
//! For more than 1,000 clients that make calls, guards are tried as well ([`GuardTrial`]).
//!
//! ```
//! use core::num::NonZeroU64;
//! use stagger_core::Seed;
//! use stagger_core::text::Rate;
//! use stagger_sim::Progress;
//! use stagger_lint::advise::{Answers, Recommendation, advise};
//! use stagger_lint::{DeploymentContext, Purpose};
//!
//! let fleet = DeploymentContext::default()
//!     .purpose(Purpose::Reconnecting)
//!     .clients(NonZeroU64::new(1_000).expect("the number is not 0"))
//!     .capacity(Rate::per_second(50.0).expect("the rate is above 0"));
//! let advice = advise(&Answers::from_context(fleet), Seed::new(1), &Progress::new())?;
//! assert_eq!(advice.recommendation(), Recommendation::Retry);
//! // The server needs 20 s to accept all clients, so every policy for connections has a spread of at least 20 s.
//! let policy = advice.policy().expect("the recommendation is to retry");
//! assert!(policy.spread().as_secs() >= 20);
//! let best = advice.front().expect("clients and capacity are known").best();
//! // Without an outage, nearly all clients are accepted at their first attempt.
//! assert!(best.by_outage[0].1.attempts_per_client < 1.2);
//! # Ok::<(), stagger_sim::ScenarioError>(())
//! ```

mod advice;
mod answers;
mod decision_tree;
mod evaluator;
mod guard_trial;
mod lengths;
mod pareto_front;
mod ranges;
mod rust_code;
mod search;
mod search_space;

pub use advice::{Advice, advise};
pub use answers::{Answers, Question, Transience};
pub use decision_tree::{Reason, Recommendation};
pub use guard_trial::{GuardFigures, GuardTrial};
pub use pareto_front::{Candidate, ParetoFront, Prediction};
pub use rust_code::rust_code;
