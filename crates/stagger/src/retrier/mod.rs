//! A retrier: a policy with everything that its calls share.

pub(crate) mod event;
pub(crate) mod handle;
pub(crate) mod limits;
pub(crate) mod shared;
pub(crate) mod sleepers;
pub(crate) mod target;
