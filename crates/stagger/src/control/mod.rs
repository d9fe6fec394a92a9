//! RetryControls for incidents: the guards of every target enforced, observed only or off, and its retries turned down or off,
//! by the target's name, while the program runs.
//!
//! ```
//! use stagger::budget::{ControlMode, Tokens};
//! use stagger::control::RetryControls;
//! use stagger::{Policy, Ratio, Retrier};
//!
//! // At the start: what STAGGER_CONTROL says, such as "db=observed; *=25%".
//! let controls = RetryControls::from_env()?;
//! let api = Retrier::new(Policy::DEFAULT).named("api").budget(Tokens::new()).controls(&controls);
//!
//! // In an incident, from a signal handler's task, a watched file or an admin page:
//! let unknown = controls.apply("api=no-retries; db=observed; *=25%")?;
//! assert_eq!(unknown, ["db".into()]);
//! // And back.
//! controls.set("*", ControlMode::Enforced);
//! # let _ = (api, Ratio::ONE);
//! # Ok::<(), stagger::control::ControlError>(())
//! ```
//!
//! # What an operator control moves
//!
//! | setting | retries and hedges | the target's breakers |
//! |---|---|---|
//! | `enforced` | the budget decides | refuse |
//! | `observed` | all pass; what the budget would have refused is counted | let pass, and count what they would have refused |
//! | `off` | all pass; the budget is not asked | let pass |
//! | `no-retries` | none passes | are left as they are: first attempts go on |
//! | a share, as `25%` or `observed 25%` | so many, evenly, go on to what the mode says; without a mode to `enforced` | as the mode says |
//!
//! *off* is the guard, not the retries: who wants fewer of these says `no-retries` or a share. A refused retry ends its
//! call with [`StopReason::Budget`](crate::StopReason::Budget) and its own last error; a refused hedge changes nothing for its call.
//!
//! What is lent by anything but a [`Retrier`](crate::Retrier) comes under an operator control by [`RetryControls::budget`]: the hedges of a
//! call, a retry queue, a batch, the budgets of single calls, such as those by key.
//!
//! ```
//! use stagger::budget::{Partitioned, Tokens, Unlimited};
//! use stagger::control::RetryControls;
//! # use std::num::NonZeroUsize;
//!
//! let controls = RetryControls::new();
//! let hedges = controls.budget("api", Unlimited);
//! let inner = controls.clone();
//! let hosts: Partitioned<String, _> =
//!     Partitioned::new(NonZeroUsize::new(100).unwrap(), move || inner.budget("api", Tokens::new()));
//! # let _ = (hedges, hosts);
//! ```
//!
//! # A line of settings
//!
//! `target=setting`, separated by `;` or line breaks, and `*` for every target, known or yet to come, that the line does
//! not name. So a line with `*` says everything, and one without changes only those it names. What follows a `#` is a
//! remark. A target that nobody has joined yet gets its setting when somebody does.
//!
//! A line with a fault changes nothing, and the error says everything that is wrong with it.

mod error;
mod line;
mod registry;

pub use error::{ControlError, ControlProblem};
pub use registry::RetryControls;
