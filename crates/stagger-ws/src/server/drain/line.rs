use core::time::Duration;

use stagger::Instant;

use crate::ReconnectAdvice;

/// Those who were told to come back, one behind the other, as far apart as the next server takes them.
///
/// As long as no more leave than the next server takes, a batch may come at once, spread over the time of that batch. What
/// leaves beyond that comes behind those who are still on their way, so that the sum never exceeds the rate, however many
/// leave when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// What one client takes, in nanoseconds.
    each: u64,
    /// Until when the next server is taken up.
    end: Instant,
}

impl Line {
    /// So many in so long, from then on.
    pub(super) fn new(many: u64, within: Duration, from: Instant) -> Self {
        let each = within.as_nanos().div_ceil(u128::from(many.max(1)));
        Self { each: u64::try_from(each).unwrap_or(u64::MAX), end: from }
    }

    /// The next so many: when they come.
    pub(super) fn join(&mut self, many: usize, now: Instant) -> ReconnectAdvice {
        let from = self.end.max(now);
        let spread = Duration::from_nanos(self.each.saturating_mul(u64::try_from(many).unwrap_or(u64::MAX)));
        self.end = from.saturating_add(spread);
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
        let mut line = Line::new(100, SECOND, START);
        for n in 0..20 {
            let now = START.saturating_add(SECOND / 10 * n);
            assert_eq!(line.join(10, now), advice(Duration::ZERO, SECOND / 10));
        }
    }

    #[test]
    fn what_leaves_beyond_the_rate_comes_behind_those_on_their_way_and_spreads_with_its_number() {
        let mut line = Line::new(100, SECOND, START);
        assert_eq!(line.join(300, START), advice(Duration::ZERO, SECOND * 3));
        assert_eq!(line.join(50, START.saturating_add(SECOND)), advice(SECOND * 2, SECOND / 2));
        // The next server has been idle since.
        assert_eq!(line.join(700, START.saturating_add(SECOND * 60)), advice(Duration::ZERO, SECOND * 7));
    }

    #[test]
    fn nobody_comes_before_the_server_is_back() {
        let mut line = Line::new(100, SECOND, START.saturating_add(SECOND * 30));
        assert_eq!(line.join(10, START), advice(SECOND * 30, SECOND / 10));
        assert_eq!(line.join(10, START.saturating_add(SECOND)), advice(SECOND * 29 + SECOND / 10, SECOND / 10));
    }

    #[test]
    fn a_line_of_any_length_is_arithmetic_and_no_panic() {
        for within in [Duration::ZERO, Duration::MAX] {
            let mut line = Line::new(0, within, START);
            line.join(usize::MAX, START);
            line.join(usize::MAX, START);
        }
    }
}
