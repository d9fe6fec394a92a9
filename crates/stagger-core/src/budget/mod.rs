//! Budgets: what bounds the retries of all calls together.
//!
//! Backoff spaces the retries of one call. When everything fails, it is the number of retries that matters, and each of
//! these bounds it, by another measure:
//!
//! | budget | retries are bounded by | comes back with | reads the clock |
//! |---|---|---|---|
//! | [`Tokens`] | a bucket of tokens | successes, time if asked | for a refill only |
//! | [`Window`] | a share of the calls in a sliding window, and so many a second | time | always |
//! | [`Lifetime`] | a share of all attempts | calls | never |
//! | [`Throttle`] | failures: none while half of the tokens are gone | successes | never |
//! | [`SuccessRate`] | failures: none while too few of the last attempts succeeded | successes | never |
//! | [`Concurrent`] | a share of the calls that are active | calls that end | never |
//! | [`Adaptive`] | chance, the more so the less the server accepts | time, successes | always |
//!
//! When in doubt: [`Tokens`] in a client, [`Window`] in a service. All of them are lock-free, without allocation, exact
//! in integers, and shared by reference by everyone who calls the same server. They need 64-bit atomics.
//!
//! [`ControlledBudget`] puts any of them aside, has it observed only, or turns retries down, while the program runs; behind it
//! [`Unlimited`] bounds nothing.
//!
//! What was lent for a retry that is cancelled while it waits comes back. One that is cancelled underway has been a
//! load on the server: its place among the active calls becomes free, and what it cost stays paid.
//!
//! ```
//! use stagger_core::budget::Window;
//! use stagger_core::{Budget, Instant, FailureKind, Ratio};
//!
//! let window = Window::builder().ratio(Ratio::percent(50)).min_per_second(0).build()?;
//! let now = Instant::ZERO;
//! for _ in 0..5 {
//!     let _ = window.on_first_attempt(&now);
//! }
//! assert_eq!(window.available(), Some(2));
//! assert!(window.try_acquire(FailureKind::Transient, &now).is_some());
//! assert!(window.try_acquire(FailureKind::Transient, &now).is_some());
//! assert!(window.try_acquire(FailureKind::Transient, &now).is_none());
//! # Ok::<(), stagger_core::budget::BudgetError>(())
//! ```

mod adaptive;
mod concurrent;
mod control;
mod controlled;
mod error;
mod lifetime;
mod shards;
mod slots;
mod spent;
mod success_rate;
mod throttle;
mod tokens;
mod unlimited;
mod window;

pub use adaptive::{Adaptive, AdaptiveBuilder, AdaptiveSnapshot};
pub use concurrent::{Concurrent, ConcurrentSnapshot};
pub use control::{ControlMode, ControlSetting, ControlSnapshot, RetryControl};
pub use controlled::ControlledBudget;
pub use error::{BudgetError, BudgetProblem};
pub use lifetime::{Lifetime, LifetimeSnapshot};
pub use success_rate::{SuccessRate, SuccessRateSnapshot};
pub use throttle::{Throttle, ThrottleSnapshot};
pub use tokens::{Refund, Tokens, TokensBuilder, TokensSnapshot};
pub use unlimited::Unlimited;
pub use window::{Window, WindowBuilder, WindowSnapshot};
