//! Draining: closes connections in batches, and assigns each client a time to reconnect.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use stagger::Instant;
use stagger::time::{Clock as _, Tokio};
use tokio::sync::{Notify, watch};
use tokio::time::{self, sleep_until, timeout};

use super::connections::ServerState;
use super::socket::SocketMessage;
use crate::advice::ReconnectAdvice;
use crate::sync::{lock, saturating_add};

/// A plan for closing the connections of a server, in batches.
///
/// Each client is told when to reconnect, in the reason of a close frame with code 1012. If a batch is no larger than
/// what the next server can take in the time of one batch, its clients may reconnect at once, spread over that time.
/// Otherwise they reconnect after the clients of earlier batches. So the next server never receives more than its rate,
/// however the drain proceeds. After [`close_remaining`](super::DrainHandle::close_remaining), the spread is the time
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
    fn schedule(&self, total: usize) -> Batches {
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
    fn return_schedule(&self, total: usize, now: Instant) -> ReturnSchedule {
        let batches = self.schedule(total);
        let from = match self.restart_downtime {
            Some(downtime) => now.saturating_add(batches.length(total)).saturating_add(downtime),
            None => now,
        };
        match self.reconnect_rate {
            Some(rate) => ReturnSchedule::new(u64::from(rate), SECOND, from),
            None => ReturnSchedule::new(u64::try_from(batches.size).unwrap_or(u64::MAX), batches.every, from),
        }
    }
}

/// How many connections are closed at a time, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Batches {
    pub(super) size: usize,
    pub(super) every: Duration,
}

impl Batches {
    /// Returns the time from the first batch to the last.
    fn length(&self, total: usize) -> Duration {
        let batches = u32::try_from(total.div_ceil(self.size)).unwrap_or(u32::MAX);
        self.every.saturating_mul(batches.saturating_sub(1))
    }
}

/// Extra time after the last close timeout, in which tasks notice that their connection has ended.
const GRACE: Duration = Duration::from_secs(1);

/// The progress of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainProgress {
    /// Connections when the drain began.
    pub total: usize,
    /// Connections that were asked to close.
    pub notified: usize,
    /// Connections that are still open, whether asked to close or not. A connection that remains at the end is held by
    /// a task that does not poll it.
    pub remaining: usize,
    /// The drain is done: no connection is left, or the remaining ones did not end in time.
    pub done: bool,
}

/// A handle to a drain that runs in the background, for watching it and for closing the remaining connections. Clones
/// refer to the same drain.
#[derive(Clone)]
pub struct DrainHandle {
    drain: Arc<DrainState>,
    shared: Arc<ServerState>,
}

impl DrainHandle {
    pub(super) const fn new(drain: Arc<DrainState>, shared: Arc<ServerState>) -> Self {
        Self { drain, shared }
    }

    pub(super) async fn run(self, plan: Drain) {
        let Self { drain, shared } = &self;
        let (settings, registry) = (&shared.settings, &shared.registry);
        let Batches { size, every } = plan.schedule(drain.total);
        let mut next_batch = time::Instant::now();
        #[cfg(feature = "tracing")]
        tracing::info!(target: "stagger", target_name = &*settings.name, total = drain.total, "draining");
        loop {
            let max = if drain.is_closing_remaining.load(Ordering::Acquire) { usize::MAX } else { size };
            let batch = registry.take_batch(max);
            let request = CloseRequest::new(drain.reserve(batch.len()));
            drain.notified.fetch_add(batch.len(), Ordering::Relaxed);
            for connection in batch {
                // An error means that the connection has ended.
                let _ = connection.send(request);
            }
            if registry.all_notified() {
                break;
            }
            // After a delay, the next batches are not made larger to catch up.
            next_batch = saturating_add(next_batch.max(time::Instant::now()), every);
            tokio::select! {
                () = sleep_until(next_batch) => {}
                () = drain.close_now.notified() => {}
            }
        }
        let _ = timeout(settings.close_timeout.saturating_add(GRACE), registry.all_closed()).await;
        #[cfg(feature = "tracing")]
        tracing::info!(target: "stagger", target_name = &*settings.name, remaining = registry.active(), "drained");
        drain.done.send_replace(true);
    }

    /// Returns the current progress.
    #[must_use]
    pub fn progress(&self) -> DrainProgress {
        DrainProgress {
            total: self.drain.total,
            notified: self.drain.notified.load(Ordering::Relaxed),
            remaining: self.shared.registry.active(),
            done: *self.drain.done.borrow(),
        }
    }

    /// Asks all remaining connections to close immediately. Their clients still reconnect at the planned rate, so the
    /// load on the next server does not change.
    pub fn close_remaining(&self) {
        self.drain.is_closing_remaining.store(true, Ordering::Release);
        self.drain.close_now.notify_one();
    }

    /// Waits until the drain is done: all connections have ended, or the close timeout plus one second has passed since
    /// the last close was requested.
    ///
    /// Cancel-safe: the drain continues if the future is dropped.
    pub async fn done(&self) -> DrainProgress {
        self.drain.done().await;
        self.progress()
    }
}

impl fmt::Debug for DrainHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DrainHandle").field(&self.progress()).finish()
    }
}

/// The close code "Service Restart" of the IANA registry.
const SERVICE_RESTART: u16 = 1012;

/// A drain's request to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseRequest {
    /// The close code: 1012, service restart.
    pub code: u16,
    /// When the client should reconnect.
    pub advice: ReconnectAdvice,
}

impl CloseRequest {
    pub(super) const fn new(advice: ReconnectAdvice) -> Self {
        Self { code: SERVICE_RESTART, advice }
    }

    /// Creates the close frame.
    #[must_use]
    pub fn to_message<M: SocketMessage>(&self) -> M {
        M::close(self.code, self.advice.to_reason())
    }
}

/// The state of a drain in progress.
pub(super) struct DrainState {
    schedule: Mutex<ReturnSchedule>,
    pub(super) total: usize,
    pub(super) notified: AtomicUsize,
    is_closing_remaining: AtomicBool,
    close_now: Notify,
    pub(super) done: watch::Sender<bool>,
}

impl DrainState {
    pub(super) fn new(plan: &Drain, total: usize) -> Self {
        Self {
            schedule: Mutex::new(plan.return_schedule(total, Tokio.now())),
            total,
            notified: AtomicUsize::new(0),
            is_closing_remaining: AtomicBool::new(false),
            close_now: Notify::new(),
            done: watch::Sender::new(false),
        }
    }

    /// Reserves return times for the next `count` clients.
    pub(super) fn reserve(&self, count: usize) -> ReconnectAdvice {
        lock(&self.schedule).reserve(count, Tokio.now())
    }

    pub(super) async fn done(&self) {
        // `self` owns the sender, so it is not closed.
        let _ = self.done.subscribe().wait_for(|done| *done).await;
    }
}

/// The times at which closed clients reconnect, one after another at the rate of the next server.
///
/// If no more clients leave than the next server takes, each batch may reconnect at once, spread over the time of that
/// batch. Clients beyond that are scheduled after those that have not reconnected yet, so the total never exceeds the
/// rate. A spread over all remaining clients would exceed it at the end, when batches leave at the rate already.
#[derive(Clone, Copy, Debug)]
struct ReturnSchedule {
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
