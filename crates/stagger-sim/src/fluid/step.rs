use core::time::Duration;

use crate::TimeSeries;

/// A step. Short against the round trips for which it is meant, long enough to answer at once.
pub(super) const STEP: Duration = Duration::from_millis(5);

pub(super) const STEPS_OF_A_BIN: usize = (TimeSeries::BIN_WIDTH.as_millis() / STEP.as_millis()) as usize;

/// A length in steps.
pub(super) fn steps(length: Duration) -> f64 {
    length.as_secs_f64() / STEP.as_secs_f64()
}

/// So many steps.
pub(super) fn time(steps: f64) -> Duration {
    STEP.mul_f64(steps)
}
