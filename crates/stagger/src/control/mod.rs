//! Operator controls for incidents: enforce, observe or disable the guards of each target, and throttle or disable its
//! retries, by the target's name, while the program runs.
//!
//! ```
//! use stagger::budget::{ControlMode, Tokens};
//! use stagger::control::RetryControls;
//! use stagger::{Policy, Ratio, Retrier};
//!
//! // At startup: the value of STAGGER_CONTROL, such as "db=observed; *=25%".
//! let controls = RetryControls::from_env()?;
//! let api = Retrier::new(Policy::DEFAULT).named("api").budget(Tokens::new()).controls(&controls);
//!
//! // In an incident, from a signal handler's task, a watched file or an admin page:
//! let unknown = controls.apply("api=no-retries; db=observed; *=25%")?;
//! assert_eq!(unknown, ["db".into()]);
//! // Afterwards, reset all targets.
//! controls.set("*", ControlMode::Enforced);
//! # let _ = (api, Ratio::ONE);
//! # Ok::<(), stagger::control::ControlError>(())
//! ```
//!
//! # Settings
//!
//! | setting | retries and hedges | the target's breakers |
//! |---|---|---|
//! | `enforced` | the budget decides | reject |
//! | `observed` | all are allowed, and counted if the budget would have rejected them | admit, and count likewise |
//! | `off` | all are allowed; the budget is not consulted | admit |
//! | `no-retries` | none is allowed | are left as they are: first attempts continue |
//! | a share: `25%` or `observed 25%` | that share, evenly distributed, goes on to the mode | as the mode says |
//!
//! The mode of a share alone is `enforced`. `off` disables the guards, not the retries: to reduce retries, use
//! `no-retries` or a share. A rejected retry ends its call with [`StopReason::Budget`](crate::StopReason::Budget) and
//! its own last error; a rejected hedge does not affect its call.
//!
//! A target has one control, which everything under its name obeys, so a share is exact for the target and not for each
//! of its clients. Setting a control replaces all of it, the mode and the share.
//!
//! Queues, batches, connections and hedged calls obey the controls of their [`Retrier`](crate::Retrier); a ticker,
//! whose ticks are not retries, does not. Budgets used without a retrier are put under a control with
//! [`RetryControls::budget`]: those of a hedged call with only a budget, or of single calls, such as budgets by key.
//!
//! ```
//! use stagger::budget::{Tokens, Unlimited};
//! use stagger::control::RetryControls;
//! use stagger::guard::Keyed;
//!
//! let controls = RetryControls::new();
//! let hedges = controls.budget("api", Unlimited);
//! let inner = controls.clone();
//! let hosts: Keyed<String, _> = Keyed::budgets(move || inner.budget("api", Tokens::new()));
//! # let _ = (hedges, hosts);
//! ```
//!
//! # Control lines
//!
//! A control line consists of `target=setting` entries, separated by `;` or line breaks. `*` stands for every target,
//! present or future, that the line does not name: a line with `*` sets all targets, one without it changes only the
//! targets it names. A `#` starts a comment. A target that is not registered yet gets its setting when it is.
//!
//! A line with a problem changes nothing, and the error lists all its problems.

pub(crate) mod keyed;
mod line;
pub(crate) mod registry;

pub use line::{ControlError, ControlProblem};
pub use registry::RetryControls;
