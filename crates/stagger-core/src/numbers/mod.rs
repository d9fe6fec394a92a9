//! The ground floor: points in time, ratios, random draws, atomics, and texts without allocation.

#[cfg(any(feature = "hedge", target_has_atomic = "64"))]
pub(crate) mod atomic;
pub(crate) mod instant;
pub(crate) mod math;
pub(crate) mod message;
pub(crate) mod random;
pub(crate) mod ratio;
