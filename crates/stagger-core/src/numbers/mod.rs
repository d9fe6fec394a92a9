//! What everything else computes with: points in time, ratios, random draws, atomics, and texts without allocation.

pub(crate) mod atomic;
#[cfg(any(test, not(target_has_atomic = "32")))]
mod counter;
pub(crate) mod draw;
pub(crate) mod instant;
pub(crate) mod math;
pub(crate) mod message;
pub(crate) mod ratio;
pub(crate) mod seed;
pub(crate) mod words;
