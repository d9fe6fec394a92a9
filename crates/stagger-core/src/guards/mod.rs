//! What calls share, and what can reject or hold an attempt: the interface of guards, budgets, the circuit breaker, the
//! quiet period and the pacer.
//!
//! Guards are part of the core, with its atomics and without locks, so that a simulation uses the same guards as a
//! program. What needs a map or a runtime, such as budgets by key, is in `stagger`. Targets without 64-bit atomics have
//! the traits only.

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
