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
//! | setting | whom the target's guards refuse or let wait | retries and hedges |
//! |---|---|---|
//! | `enforced` | is refused, and waits | as the guards decide |
//! | `observed` | starts at once, and is counted | are reserved with the guards, and allowed |
//! | `off` | starts at once | are allowed, without a reservation |
//! | `no-retries` | is refused, and waits | none is allowed |
//! | a share: `25%` or `observed 25%` | as the mode says | that share of those that the mode allows, evenly distributed |
//!
//! The mode of a share alone is `enforced`. `off` disables the guards, not the retries: to reduce retries, use
//! `no-retries` or a share. The guards are told of every attempt in every mode. A retry that the control rejects ends
//! its call with [`StopReason::CONTROL`](crate::StopReason::CONTROL) and its own last error, one that a guard under it
//! rejects with the guard's reason; a rejected hedge does not affect its call.
//!
//! A target has one control, which everything under its name obeys, so a share is exact for the target and not for each
//! of its clients. Setting a control replaces all of it, the mode and the share.
//!
//! Queues, batches, connections and hedged calls obey the controls of their [`Retrier`](crate::Retrier); a ticker,
//! whose ticks are not retries, does not. A guard that is used without a retrier is put under a control with
//! [`Controlled`](crate::budget::Controlled), such as one by key. The control is a guard itself: put it behind them.
//!
//! ```
//! use std::sync::Arc;
//! use stagger::budget::{Controlled, Tokens};
//! use stagger::control::RetryControls;
//! use stagger::guard::Keyed;
//! use stagger::time::{Clock as _, SystemClock};
//! use stagger::{Policy, blocking};
//!
//! let control = RetryControls::new().control("api");
//! let of_host = Arc::clone(&control);
//! let hosts: Keyed<String, _> =
//!     Keyed::guards(move || Controlled::new(Arc::new(Tokens::new()), Arc::clone(&of_host)));
//! let budget = hosts.of("a.example.com", SystemClock.now());
//! let call = blocking::retry(&Policy::DEFAULT, || Ok::<_, ()>("page")).guard(&*budget).guard(&*control);
//! assert!(call.run().is_ok());
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
