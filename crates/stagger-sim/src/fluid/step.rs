use core::time::Duration;

use crate::engine::recording::time_series::TimeSeries;

/// The time step: short compared with typical round trips, long enough for a fast computation.
pub(super) const STEP: Duration = Duration::from_millis(5);

pub(super) const STEPS_OF_A_BIN: usize = (TimeSeries::BIN_WIDTH.as_millis() / STEP.as_millis()) as usize;

pub(super) fn steps(length: Duration) -> f64 {
    length.as_secs_f64() / STEP.as_secs_f64()
}

pub(super) fn time(steps: f64) -> Duration {
    STEP.mul_f64(steps)
}
