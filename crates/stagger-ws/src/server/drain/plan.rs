use core::time::Duration;

use stagger::Instant;

use super::return_schedule::ReturnSchedule;

/// A plan for closing the connections of a server, in batches.
///
/// Each client is told when to reconnect, in the reason of a close frame with code 1012. If a batch is no larger than
/// what the next server can take in the time of one batch, its clients may reconnect at once, spread over that time.
/// Otherwise they reconnect after the clients of earlier batches. So the next server never receives more than its rate,
/// however the drain proceeds. After [`close_remaining`](crate::server::DrainHandle::close_remaining), the spread is the time
/// that the next server needs for all remaining clients.
///
/// ```
/// use std::time::Duration;
/// use stagger_ws::server::Drain;
///
/// // At the rate of the next server, within a given time, or in explicit batches.
/// let drain = Drain::per_second(500);
/// let drain = Drain::over(Duration::from_secs(60));
/// let drain = Drain::batches(50, Duration::from_secs(1)).reconnect_rate(500);
/// // Without another server: this one is back two seconds after its last connection was closed.
/// let drain = Drain::over(Duration::from_secs(10)).reconnect_rate(500).restart_downtime(Duration::from_secs(2));
/// # let _ = drain;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a plan does nothing until it is passed to `Sockets::drain`"]
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

/// The time between two batches, if the plan does not set it: too short for a client to notice, and long compared with
/// a timer's resolution.
const TICK: Duration = Duration::from_millis(100);
/// The resolution of tokio's timer.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

impl Drain {
    /// Closes `size` connections every `every`. The minimum is 1 connection and 1 ms.
    pub const fn batches(size: usize, every: Duration) -> Self {
        Self { pace: Pace::Batches { size, every }, reconnect_rate: None, restart_downtime: None }
    }

    /// Closes all connections within `length`, in batches of equal size, ten per second.
    pub const fn over(length: Duration) -> Self {
        Self { pace: Pace::Over(length), reconnect_rate: None, restart_downtime: None }
    }

    /// Closes `rate` connections per second, the rate at which the next server accepts clients: ten batches per second,
    /// or one client at a time for rates below 10. 0 counts as 1.
    pub const fn per_second(rate: u32) -> Self {
        let rate = if rate == 0 { 1 } else { rate };
        let (size, every) = if rate < 10 {
            (1, Duration::from_nanos(1_000_000_000 / rate as u64))
        } else {
            // The batch size is rounded up, and the interval follows from it, so that the rate is exact.
            let size = rate.div_ceil(10);
            (size as usize, Duration::from_nanos(size as u64 * 1_000_000_000 / rate as u64))
        };
        Self { pace: Pace::Batches { size, every }, reconnect_rate: Some(rate), restart_downtime: None }
    }

    /// Sets how many clients per second the next server accepts. Default: the rate at which this plan closes
    /// connections.
    pub const fn reconnect_rate(self, rate: u32) -> Self {
        Self { reconnect_rate: Some(rate), ..self }
    }

    /// Makes the clients reconnect to this same server, which is back `length` after its last connection was closed. By
    /// default, clients reconnect to another server, which is up.
    pub const fn restart_downtime(self, length: Duration) -> Self {
        Self { restart_downtime: Some(length), ..self }
    }

    /// Returns the batches for `total` connections.
    pub(in crate::server) fn schedule(&self, total: usize) -> Batches {
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

    /// Returns the schedule in which the closed clients reconnect.
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

/// How many connections are closed at a time, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct Batches {
    pub(in crate::server) size: usize,
    pub(in crate::server) every: Duration,
}

impl Batches {
    /// Returns the time from the first batch to the last.
    fn length(&self, total: usize) -> Duration {
        let batches = u32::try_from(total.div_ceil(self.size)).unwrap_or(u32::MAX);
        self.every.saturating_mul(batches.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::ReconnectAdvice;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn every_plan_becomes_batches() {
        for (plan, total, size, every) in [
            (Drain::per_second(500), 2_000, 50, ms(100)),
            (Drain::per_second(7), 2_000, 1, SECOND / 7),
            (Drain::per_second(0), 1, 1, SECOND),
            // 3 connections every 3/25 of a second.
            (Drain::per_second(25), 2_000, 3, ms(120)),
            (Drain::batches(0, Duration::ZERO), 10, 1, ms(1)),
            (Drain::over(ms(10_000)), 2_000, 20, ms(100)),
            // Fewer connections than ticks: one at a time, over the whole length.
            (Drain::over(ms(10_000)), 4, 1, ms(2_500)),
            (Drain::over(Duration::ZERO), 2_000, 2_000, ms(1)),
            (Drain::over(ms(10_000)), 0, 1, ms(10_000)),
        ] {
            assert_eq!(plan.schedule(total), Batches { size, every }, "{plan:?} for {total}");
        }
    }

    #[test]
    fn the_default_reconnect_rate_is_the_rate_of_the_drain() {
        let now = Instant::from_nanos(7);
        let mut schedule = Drain::batches(50, SECOND).return_schedule(500, now);
        assert_eq!(schedule.reserve(50, now), ReconnectAdvice { retry_after: Duration::ZERO, spread: SECOND });
        let mut schedule = Drain::batches(50, SECOND).reconnect_rate(500).return_schedule(500, now);
        assert_eq!(schedule.reserve(50, now), ReconnectAdvice { retry_after: Duration::ZERO, spread: SECOND / 10 });
    }

    #[test]
    fn clients_of_a_restarting_server_reconnect_after_it_is_back() {
        let now = Instant::from_nanos(7);
        // The last of ten batches is closed after nine seconds.
        let mut schedule = Drain::batches(50, SECOND).restart_downtime(ms(2_000)).return_schedule(500, now);
        assert_eq!(schedule.reserve(50, now), ReconnectAdvice { retry_after: ms(11_000), spread: SECOND });
    }
}
