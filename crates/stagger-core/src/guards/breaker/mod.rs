//! Circuit breakers: they reject calls to a server that is known to be down.
//!
//! ```
//! use core::time::Duration;
//! use stagger_core::breaker::{BreakerState, CircuitBreaker};
//! use stagger_core::{Breaker, Instant, Outcome, Ratio, Seed};
//!
//! // In `stagger` the seed is `stagger::seed()`.
//! let breaker = CircuitBreaker::builder(Seed::new(1)).failure_ratio(Ratio::percent(50)).min_calls(10).build()?;
//! let now = Instant::ZERO;
//! for _ in 0..10 {
//!     let permit = breaker.admit(&now).expect("closed");
//!     breaker.record(permit, &Outcome::TRANSIENT, &now);
//! }
//! assert_eq!(breaker.state(), BreakerState::Open);
//! // Between half of five seconds and the whole, by the default open time.
//! let open = breaker.admit(&now).unwrap_err();
//! assert!(open.retry_in >= Duration::from_millis(2_500) && open.retry_in <= Duration::from_secs(5));
//! # Ok::<(), stagger_core::breaker::CircuitBreakerError>(())
//! ```
//!
//! Budget or breaker? A [`Budget`](crate::Budget) bounds the *retries* of a client whose server is failing; a breaker
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
