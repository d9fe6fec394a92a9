//! What calls share, and what can reject a retry: the interface of guards, budgets and the circuit breaker.

#[cfg(target_has_atomic = "64")]
pub mod breaker;
#[cfg(target_has_atomic = "64")]
pub mod budget;
pub mod guard;
#[cfg(target_has_atomic = "64")]
mod shards;
