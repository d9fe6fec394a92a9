//! The circuit breaker: it keeps calls away from a server that is known to be down.
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
//!     let pass = breaker.admit(&now).expect("closed");
//!     breaker.record(pass, &Outcome::TRANSIENT, &now);
//! }
//! assert_eq!(breaker.state(), BreakerState::Open);
//! // Between half of five seconds and the whole, by the default open time.
//! let open = breaker.admit(&now).unwrap_err();
//! assert!(open.retry_in >= Duration::from_millis(2_500) && open.retry_in <= Duration::from_secs(5));
//! # Ok::<(), stagger_core::breaker::CircuitBreakerError>(())
//! ```
//!
//! Budget or breaker? A [`Budget`](crate::Budget) bounds the *retries* of a client whose server is ailing; a breaker
//! stops *first attempts* as well, while the server is down. A breaker is for one target each: a breaker in front of
//! many hosts keeps calls away from the healthy ones too.

mod builder;
mod calls;
mod circuit;
mod error;
mod ledger;
mod packed_state;
mod rules;
mod snapshot;
mod time;
mod window;

pub use builder::CircuitBreakerBuilder;
pub use circuit::CircuitBreaker;
pub use error::{CircuitBreakerError, CircuitBreakerProblem};
pub use snapshot::{BreakerSnapshot, BreakerState, TransitionCause};
pub use window::Window;
