use core::time::Duration;

use stagger::Instant;

use super::return_schedule::ReturnSchedule;

/// How a server lets its connections go: so many every so often.
///
/// Each client is told, in the reason of a close frame with code 1012, when it is to come back: with a batch that is no
/// larger than what the next server takes in that time, at once, spread over the time of the batch; with more than that,
/// behind those who were told before. So however the drain goes, the next server never meets more than it takes, and in a
/// drain that is [hurried](super::DrainHandle::close_remaining) the spread is what the next server needs for all who are left.
///
/// ```
/// use std::time::Duration;
/// use stagger_ws::server::Drain;
///
/// // What the next server takes, or how long it may take, or to the letter.
/// let drain = Drain::per_second(500);
/// let drain = Drain::over(Duration::from_secs(60));
/// let drain = Drain::batches(50, Duration::from_secs(1)).reconnect_rate(500);
/// // There is no other server: this one will be back two seconds after it has let the last one go.
/// let drain = Drain::over(Duration::from_secs(10)).reconnect_rate(500).restart_downtime(Duration::from_secs(2));
/// # let _ = drain;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a plan does nothing until it is given to `Sockets::drain`"]
pub struct Drain {
    pace: Pace,
    reconnect_rate: Option<u32>,
    restart_downtime: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    Batches { size: usize, every: Duration },
    Over(Duration),
}

/// Between two batches, where the plan does not say it: short beside anything that a client notices, long beside a timer.
const TICK: Duration = Duration::from_millis(100);
/// The resolution of tokio's timer.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

impl Drain {
    /// So many at once, every so often. 0 is taken for 1, and less than a millisecond for one.
    pub const fn batches(size: usize, every: Duration) -> Self {
        Self { pace: Pace::Batches { size, every }, reconnect_rate: None, restart_downtime: None }
    }

    /// All of them in so long, in batches of equal size, ten a second.
    pub const fn over(length: Duration) -> Self {
        Self { pace: Pace::Over(length), reconnect_rate: None, restart_downtime: None }
    }

    /// As many a second as the next server takes: ten batches a second, or one client at a time if there are fewer. 0 is
    /// taken for 1.
    pub const fn per_second(rate: u32) -> Self {
        let rate = if rate == 0 { 1 } else { rate };
        let (size, every) = if rate < 10 {
            (1, Duration::from_nanos(1_000_000_000 / rate as u64))
        } else {
            // To the batch of full size; the time follows, so that the rate is exact.
            let size = rate.div_ceil(10);
            (size as usize, Duration::from_nanos(size as u64 * 1_000_000_000 / rate as u64))
        };
        Self { pace: Pace::Batches { size, every }, reconnect_rate: Some(rate), restart_downtime: None }
    }

    /// How many a second the next server takes. Default: as many as leave by this plan.
    pub const fn reconnect_rate(self, rate: u32) -> Self {
        Self { reconnect_rate: Some(rate), ..self }
    }

    /// The clients come back to this same server, so long after the last has left. Default: there is another server, which
    /// is up.
    pub const fn restart_downtime(self, length: Duration) -> Self {
        Self { restart_downtime: Some(length), ..self }
    }

    /// The plan for so many connections.
    pub(super) fn schedule(&self, total: usize) -> Batches {
        match self.pace {
            Pace::Batches { size, every } => Batches { size: size.max(1), every: every.max(MIN_INTERVAL) },
            Pace::Over(length) => {
                let ticks = usize::try_from(length.as_nanos() / TICK.as_nanos()).unwrap_or(usize::MAX).max(1);
                let size = total.div_ceil(ticks).max(1);
                let batches = u32::try_from(total.div_ceil(size)).unwrap_or(u32::MAX).max(1);
                Batches { size, every: (length / batches).max(MIN_INTERVAL) }
            }
        }
    }

    /// Where those who leave schedule up.
    pub(super) fn return_schedule(&self, total: usize, now: Instant) -> ReturnSchedule {
        let batches = self.schedule(total);
        let from = self
            .restart_downtime
            .map_or(now, |length| now.saturating_add(batches.length(total)).saturating_add(length));
        match self.reconnect_rate {
            Some(rate) => ReturnSchedule::new(u64::from(rate), SECOND, from),
            None => ReturnSchedule::new(u64::try_from(batches.size).unwrap_or(u64::MAX), batches.every, from),
        }
    }
}

/// So many at once, every so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batches {
    pub(super) size: usize,
    pub(super) every: Duration,
}

impl Batches {
    /// From the first batch to the last.
    fn length(&self, total: usize) -> Duration {
        let batches = u32::try_from(total.div_ceil(self.size)).unwrap_or(u32::MAX);
        self.every.saturating_mul(batches.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReconnectAdvice;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_plan_is_batches() {
        for (plan, total, size, every) in [
            (Drain::per_second(500), 2_000, 50, ms(100)),
            (Drain::per_second(7), 2_000, 1, SECOND / 7),
            (Drain::per_second(0), 1, 1, SECOND),
            // 3 in 3/25 of a second.
            (Drain::per_second(25), 2_000, 3, ms(120)),
            (Drain::batches(0, Duration::ZERO), 10, 1, ms(1)),
            (Drain::over(ms(10_000)), 2_000, 20, ms(100)),
            // Fewer connections than ticks: one at a time, over the same length.
            (Drain::over(ms(10_000)), 4, 1, ms(2_500)),
            (Drain::over(Duration::ZERO), 2_000, 2_000, ms(1)),
            (Drain::over(ms(10_000)), 0, 1, ms(10_000)),
        ] {
            assert_eq!(plan.schedule(total), Batches { size, every }, "{plan:?} for {total}");
        }
    }

    #[test]
    fn by_default_the_next_server_takes_as_many_as_leave() {
        let now = Instant::from_nanos(7);
        let mut schedule = Drain::batches(50, SECOND).return_schedule(500, now);
        assert_eq!(schedule.reserve(50, now), ReconnectAdvice { retry_after: Duration::ZERO, spread: SECOND });
        let mut schedule = Drain::batches(50, SECOND).reconnect_rate(500).return_schedule(500, now);
        assert_eq!(schedule.reserve(50, now), ReconnectAdvice { retry_after: Duration::ZERO, spread: SECOND / 10 });
    }

    #[test]
    fn who_returns_to_the_same_server_comes_after_it_is_back() {
        let now = Instant::from_nanos(7);
        // The last of ten batches leaves after nine seconds.
        let mut schedule = Drain::batches(50, SECOND).restart_downtime(ms(2_000)).return_schedule(500, now);
        assert_eq!(schedule.reserve(50, now), ReconnectAdvice { retry_after: ms(11_000), spread: SECOND });
    }
}
