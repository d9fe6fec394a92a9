use core::time::Duration;

use stagger::Instant;

use crate::advice::ReconnectAdvice;

/// The times at which closed clients reconnect, one after another at the rate of the next server.
///
/// If no more clients leave than the next server takes, each batch may reconnect at once, spread over the time of that
/// batch. Clients beyond that are scheduled after those that have not reconnected yet, so the total never exceeds the
/// rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReturnSchedule {
    /// The time that the next server needs per client, in nanoseconds.
    per_client_nanos: u64,
    /// The end of the reserved time.
    busy_until: Instant,
}

impl ReturnSchedule {
    /// Creates a schedule with a rate of `count` clients per `period`, beginning at `from`.
    pub(super) fn new(count: u64, period: Duration, from: Instant) -> Self {
        let per_client_nanos = period.as_nanos().div_ceil(u128::from(count.max(1)));
        Self { per_client_nanos: u64::try_from(per_client_nanos).unwrap_or(u64::MAX), busy_until: from }
    }

    /// Reserves time for the next `count` clients.
    pub(super) fn reserve(&mut self, count: usize, now: Instant) -> ReconnectAdvice {
        let from = self.busy_until.max(now);
        let spread =
            Duration::from_nanos(self.per_client_nanos.saturating_mul(u64::try_from(count).unwrap_or(u64::MAX)));
        self.busy_until = from.saturating_add(spread);
        ReconnectAdvice { retry_after: from.saturating_since(now), spread }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const START: Instant = Instant::from_nanos(1_000_000_000_000);

    fn advice(retry_after: Duration, spread: Duration) -> ReconnectAdvice {
        ReconnectAdvice { retry_after, spread }
    }

    #[test]
    fn batches_at_the_server_s_rate_reconnect_at_once_each_over_its_own_period() {
        let mut schedule = ReturnSchedule::new(100, SECOND, START);
        for n in 0..20 {
            let now = START.saturating_add(SECOND / 10 * n);
            assert_eq!(schedule.reserve(10, now), advice(Duration::ZERO, SECOND / 10));
        }
    }

    #[test]
    fn clients_beyond_the_rate_are_scheduled_after_earlier_ones() {
        let mut schedule = ReturnSchedule::new(100, SECOND, START);
        assert_eq!(schedule.reserve(300, START), advice(Duration::ZERO, SECOND * 3));
        assert_eq!(schedule.reserve(50, START.saturating_add(SECOND)), advice(SECOND * 2, SECOND / 2));
        // The next server has been idle in the meantime.
        let now = START.saturating_add(SECOND * 60);
        assert_eq!(schedule.reserve(700, now), advice(Duration::ZERO, SECOND * 7));
        assert_eq!(schedule.reserve(50, now), advice(SECOND * 7, SECOND / 2));
    }

    #[test]
    fn no_client_reconnects_before_the_server_is_back() {
        let mut schedule = ReturnSchedule::new(100, SECOND, START.saturating_add(SECOND * 30));
        assert_eq!(schedule.reserve(10, START), advice(SECOND * 30, SECOND / 10));
        assert_eq!(schedule.reserve(10, START.saturating_add(SECOND)), advice(SECOND * 29 + SECOND / 10, SECOND / 10));
    }

    #[test]
    fn extreme_inputs_do_not_panic() {
        for period in [Duration::ZERO, Duration::MAX] {
            let mut schedule = ReturnSchedule::new(0, period, START);
            schedule.reserve(usize::MAX, START);
            schedule.reserve(usize::MAX, START);
        }
    }
}
