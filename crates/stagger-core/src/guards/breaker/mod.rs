//! Circuit breakers: they reject calls to a server that is known to be down.
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::breaker::{BreakerState, CircuitBreaker};
//! use stagger_core::guard::{Answer, Ask, End, Guard, Permit};
//! use stagger_core::{Instant, Outcome, Ratio, Seed};
//!
//! // In `stagger` the seed is `stagger::seed()`.
//! let breaker = CircuitBreaker::builder(Seed::new(1)).failure_ratio(Ratio::percent(50)).min_calls(10).build()?;
//! let now = Instant::ZERO;
//! for _ in 0..10 {
//!     let Answer::Go(permit) = breaker.ask(Ask::FIRST, Permit::NONE, &now) else { panic!("closed") };
//!     breaker.settle(permit, End::Made(&Outcome::TRANSIENT), &now);
//! }
//! assert_eq!(breaker.state(), BreakerState::Open);
//! // Between half of five seconds and the whole, by the default open time.
//! let Answer::No { retry_in } = breaker.ask(Ask::FIRST, Permit::NONE, &now) else { panic!("open") };
//! assert!(retry_in >= Duration::from_millis(2_500) && retry_in <= Duration::from_secs(5));
//! # Ok::<(), stagger_core::breaker::CircuitBreakerError>(())
//! ```
//!
//! Budget or breaker? A [budget](crate::budget) bounds the *retries* of a client whose server is failing; a breaker
//! also stops *first attempts* while the server is down. Use one breaker per target: a breaker for many hosts also
//! rejects calls to the healthy ones.

mod builder;
mod calls;
mod circuit;
mod rules;
mod state;
mod time;
mod transitions;
mod window;

pub use builder::{CircuitBreakerBuilder, CircuitBreakerError, CircuitBreakerProblem};
pub use circuit::CircuitBreaker;
pub use state::{BreakerSnapshot, BreakerState, Evidence, TransitionCause};
pub use window::Window;
