//! The type of quiet periods that calls ask without a virtual call.

#[cfg(not(target_has_atomic = "64"))]
use stagger_core::Instant;
#[cfg(not(target_has_atomic = "64"))]
use stagger_core::guard::LimiterPermit;

/// A quiet period that is known by its type.
#[cfg(target_has_atomic = "64")]
pub(crate) type KnownQuiet = stagger_core::quiet::QuietPeriod;

/// A quiet period of a target without 64-bit atomics: there is none.
#[cfg(not(target_has_atomic = "64"))]
#[derive(Debug)]
pub(crate) enum KnownQuiet {}

#[cfg(not(target_has_atomic = "64"))]
impl KnownQuiet {
    pub(crate) const fn admit_if_open(&self) -> Option<LimiterPermit> {
        match *self {}
    }

    pub(crate) fn record_success(&self, _: LimiterPermit, _: Option<Instant>, _: impl FnOnce() -> Instant) {
        match *self {}
    }
}
