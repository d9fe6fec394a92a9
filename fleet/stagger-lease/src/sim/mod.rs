//! A token budget that the processes of a simulated fleet share by leases: the protocol of `stagger-redis` in virtual
//! time.
//!
//! The rules are those of this crate, for both sides. What is simulated is what lies between: messages that take
//! time, a store that is away or loses its data, and processes that cannot reach it.

mod fleet;
mod member;
mod tokens;

pub use tokens::{LeaseError, LeasedTokens, LeasedTokensBuilder};
