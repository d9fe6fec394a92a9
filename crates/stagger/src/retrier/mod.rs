//! A retrier: a policy with everything that its calls share.

pub(crate) mod event;
pub(crate) mod handle;
pub(crate) mod limits;
#[cfg(target_has_atomic = "64")]
pub(crate) mod shared;
pub(crate) mod target;
