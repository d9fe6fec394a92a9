//! Retry budgets: they bound the retries of all calls together.
//!
//! Backoff spaces the retries of one call. During an outage the total number of retries matters. Each of these budgets
//! bounds it by another measure:
//!
//! | budget | retries are bounded by | recovers with | reads the clock |
//! |---|---|---|---|
//! | [`Tokens`] | a bucket of tokens | successes; time, with a refill | for a refill only |
//! | [`Window`] | a share of the calls in a sliding window, plus a minimum per second | time | always |
//! | [`Lifetime`] | a share of all attempts | calls | never |
//! | [`Throttle`] | failures: none while half of the tokens are used up | successes | never |
//! | [`SuccessRate`] | failures: none while too few of the last attempts succeeded | successes | never |
//! | [`Concurrent`] | a share of the calls that are active | calls that end | never |
//! | [`Adaptive`] | chance: the less the server accepts, the fewer | time, successes | always |
//!
//! When in doubt: [`Tokens`] in a client, [`Window`] in a service. All of them are lock-free, allocate nothing, count
//! exactly in integers, and are shared by reference between all calls to the same server. They need 64-bit atomics.
//!
//! [`Controlled`] puts a budget, or any other guard, under an operator control that switches it off or only observes it
//! while the program runs. [`RetryControl`] is that control, and a guard that limits the retries to a share or stops
//! them.
//!
//! The cost of a retry that is cancelled during its delay is returned. A retry cancelled while in flight has been a
//! load on the server: it no longer counts as active, but its cost stays charged. Otherwise a caller whose own timeout
//! cancels each retry would have retries without a bound.
//!
//! ```
//! use stagger_core::budget::Window;
//! use stagger_core::guard::{Ask, Guard, Permit};
//! use stagger_core::{FailureKind, Instant, Ratio};
//!
//! let window = Window::builder().ratio(Ratio::percent(50)).min_per_second(0).build()?;
//! let now = Instant::ZERO;
//! for _ in 0..5 {
//!     let _ = window.ask(Ask::FIRST, Permit::NONE, &now);
//! }
//! assert_eq!(window.available(), Some(2));
//! assert!(window.reserve(FailureKind::Transient, &now).is_some());
//! assert!(window.reserve(FailureKind::Transient, &now).is_some());
//! assert!(window.reserve(FailureKind::Transient, &now).is_none());
//! # Ok::<(), stagger_core::budget::BudgetError>(())
//! ```

mod adaptive;
mod concurrent;
mod control;
mod error;
mod lifetime;
mod slots;
mod success_rate;
mod throttle;
mod tokens;
mod window;

pub use adaptive::{Adaptive, AdaptiveBuilder, AdaptiveSnapshot};
pub use concurrent::{Concurrent, ConcurrentSnapshot};
pub use control::{ControlMode, ControlSetting, ControlSnapshot, Controlled, RetryControl};
pub use error::{BudgetError, BudgetProblem};
pub use lifetime::{Lifetime, LifetimeSnapshot};
pub use success_rate::{SuccessRate, SuccessRateSnapshot};
pub use throttle::{Throttle, ThrottleSnapshot};
pub use tokens::{Refund, Tokens, TokensBuilder, TokensSnapshot, TokensState};
pub use window::{Window, WindowBuilder, WindowSnapshot};
