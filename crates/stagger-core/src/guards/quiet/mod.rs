//! The quiet period: when a server asks one call to stay away, all calls to it stay away.
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::guard::{Answer, Ask, End, Guard, Permit};
//! use stagger_core::quiet::QuietPeriod;
//! use stagger_core::{Instant, Outcome, ServerHint};
//!
//! static QUIET: QuietPeriod = QuietPeriod::new();
//!
//! let now = Instant::from_nanos(1_000_000_000);
//! let Answer::Go(permit) = QUIET.ask(Ask::FIRST, Permit::NONE, &now) else { panic!("not armed") };
//! // The server answers `429` with `Retry-After: 10`.
//! let throttled = Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(10))));
//! QUIET.settle(permit, End::Made(&throttled), &now);
//! // The next call waits, although it has not met the server.
//! let Answer::Wait { after, permit } = QUIET.ask(Ask::FIRST, Permit::NONE, &now) else { panic!("armed") };
//! assert_eq!(after, Duration::from_secs(10));
//! QUIET.settle(permit, End::NeverMade, &now);
//! ```
//!
//! Quiet period, breaker or budget? A quiet period does what the server *asks for*, and only until the server takes
//! calls again. A [breaker](crate::breaker) acts on failures of every kind and rejects calls. A
//! [budget](crate::budget) bounds retries and never stops a first attempt.

mod builder;
mod pace;
mod period;
mod recent;
mod results;
mod state;

pub use builder::{QuietPeriodBuilder, QuietPeriodError, QuietPeriodProblem};
pub use period::QuietPeriod;
pub use state::{QuietSnapshot, QuietState, QuietTrigger};
