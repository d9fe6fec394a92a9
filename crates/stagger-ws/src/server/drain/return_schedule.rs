use core::time::Duration;

use stagger::Instant;

use crate::ReconnectAdvice;

/// Those who were told to come back, one behind the other, as far apart as the next server takes them.
///
/// As long as no more leave than the next server takes, a batch may come at once, spread over the time of that batch. What
/// leaves beyond that comes behind those who are still on their way, so that the sum never exceeds the rate, however count
/// leave when.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReturnSchedule {
    /// What one client takes, in nanoseconds.
    per_client_nanos: u64,
    /// Until when the next server is taken up.
    busy_until: Instant,
}

impl ReturnSchedule {
    /// So count in so long, from then on.
    pub(super) fn new(count: u64, period: Duration, from: Instant) -> Self {
        let per_client_nanos = period.as_nanos().div_ceil(u128::from(count.max(1)));
        Self { per_client_nanos: u64::try_from(per_client_nanos).unwrap_or(u64::MAX), busy_until: from }
    }

    /// The next so count: when they come.
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
    fn batches_at_the_rate_of_the_next_server_may_come_at_once_each_over_its_own_time() {
        let mut schedule = ReturnSchedule::new(100, SECOND, START);
        for n in 0..20 {
            let now = START.saturating_add(SECOND / 10 * n);
            assert_eq!(schedule.reserve(10, now), advice(Duration::ZERO, SECOND / 10));
        }
    }

    #[test]
    fn what_leaves_beyond_the_rate_comes_behind_those_on_their_way_and_spreads_with_its_number() {
        let mut schedule = ReturnSchedule::new(100, SECOND, START);
        assert_eq!(schedule.reserve(300, START), advice(Duration::ZERO, SECOND * 3));
        assert_eq!(schedule.reserve(50, START.saturating_add(SECOND)), advice(SECOND * 2, SECOND / 2));
        // The next server has been idle since.
        assert_eq!(schedule.reserve(700, START.saturating_add(SECOND * 60)), advice(Duration::ZERO, SECOND * 7));
    }

    #[test]
    fn nobody_comes_before_the_server_is_back() {
        let mut schedule = ReturnSchedule::new(100, SECOND, START.saturating_add(SECOND * 30));
        assert_eq!(schedule.reserve(10, START), advice(SECOND * 30, SECOND / 10));
        assert_eq!(schedule.reserve(10, START.saturating_add(SECOND)), advice(SECOND * 29 + SECOND / 10, SECOND / 10));
    }

    #[test]
    fn a_line_of_any_length_is_arithmetic_and_no_panic() {
        for period in [Duration::ZERO, Duration::MAX] {
            let mut schedule = ReturnSchedule::new(0, period, START);
            schedule.reserve(usize::MAX, START);
            schedule.reserve(usize::MAX, START);
        }
    }
}
