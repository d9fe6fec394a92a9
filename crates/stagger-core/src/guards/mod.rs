//! What calls share, and what can reject or hold an attempt: the interface of guards, budgets, the circuit breaker, the
//! quiet period and the pacer.

#[cfg(target_has_atomic = "64")]
pub mod breaker;
#[cfg(target_has_atomic = "64")]
pub mod budget;
pub mod guard;
#[cfg(target_has_atomic = "64")]
pub(crate) mod hold;
pub(crate) mod now;
#[cfg(target_has_atomic = "64")]
pub mod pacer;
#[cfg(target_has_atomic = "64")]
pub mod quiet;
#[cfg(target_has_atomic = "64")]
mod shards;
