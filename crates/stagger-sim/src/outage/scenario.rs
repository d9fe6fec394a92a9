//! The settings of an outage, and the longest time that a call may take.

use core::ops::RangeInclusive;
use core::time::Duration;

use stagger_core::Policy;

use super::StoreFaults;
use crate::engine::{CLIENT_BITS, MAX_TIME, micros};
use crate::environment::Network;
use crate::scenario::{ScenarioError, ScenarioProblem, is_rate, setters};

/// An outage: the traffic, the server and the outage. Plain data; valid once built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutageScenario {
    pub(crate) rate: f64,
    pub(crate) capacity: f64,
    pub(crate) queue: u32,
    pub(crate) processes: u32,
    pub(crate) outage: OutageKind,
    /// In microseconds, like the following times.
    pub(crate) one_way: u64,
    pub(crate) timeout: u64,
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) horizon: u64,
    /// The hint in a rejection.
    pub(crate) retry_after: Option<u64>,
    pub(crate) store: StoreFaults,
}

/// Builds an [`OutageScenario`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct OutageScenarioBuilder(OutageScenario);

/// The behavior of the server during an outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutageKind {
    /// The server stalls: no job starts, the job in progress pauses, and the queue fills.
    #[default]
    Stall,
    /// The server rejects all attempts at once and processes its queue.
    Reject,
    /// The server refuses all attempts at once because they are too many, as with status 429, and processes its queue.
    /// Such failures are [throttled](stagger_core::FailureKind::Throttled): a quiet period and a pacer count them.
    Throttle,
}

/// Range of the number of jobs and processes, limited by memory.
const COUNTS: RangeInclusive<u32> = 1..=1 << CLIENT_BITS;

impl OutageScenario {
    pub(super) const MAX_REQUESTS: usize = 1 << CLIENT_BITS;

    /// The most client processes: 67,108,864.
    pub const MAX_PROCESSES: u32 = 1 << CLIENT_BITS;

    /// Starts a scenario with this mean number of requests per second, a billionth to a billion, and the defaults of
    /// all other settings.
    pub const fn builder(rate: f64) -> OutageScenarioBuilder {
        OutageScenarioBuilder(Self {
            rate,
            capacity: 1_000.0,
            queue: 3_000,
            processes: 10,
            outage: OutageKind::Stall,
            one_way: 5_000,
            timeout: 1_000_000,
            start: 20_000_000,
            duration: 2_000_000,
            horizon: default_horizon(rate),
            retry_after: None,
            store: StoreFaults::none(),
        })
    }

    /// Returns the number of client processes.
    #[must_use]
    pub const fn processes(&self) -> u32 {
        self.processes
    }
}

/// Returns a horizon, in microseconds, with enough windows after a short outage to see whether it recovers.
const fn default_horizon(rate: f64) -> u64 {
    const LEAST: u64 = 120_000_000;
    // Not a number, and out of range, if the rate is invalid.
    let wanted = (2_400.0 * 1e6 / rate) as u64;
    if wanted <= LEAST {
        LEAST
    } else if wanted >= MAX_TIME {
        MAX_TIME
    } else {
        wanted
    }
}

/// Calls with more attempts take too long to wait for.
const MAX_ATTEMPTS: u32 = 10_000;

/// Returns the longest time that a call takes, from its arrival to its last outcome; `None` if there is no limit.
/// `hint` is the server's, or 0.
pub(crate) fn longest_call(policy: &Policy, timeout: Duration, hint: Duration) -> Option<Duration> {
    let by_attempts = match policy.max_attempts() {
        Some(most) if most.get() <= MAX_ATTEMPTS => Some(length_of_attempts(policy, most.get(), timeout, hint)),
        _ => None,
    };
    let by_time = policy.max_elapsed().map(|most| most.saturating_add(timeout));
    let longest = by_attempts.into_iter().chain(by_time).min()?;
    Some(longest.saturating_add(policy.spread()))
}

/// Returns the longest time that this many attempts take, with the delays between them.
fn length_of_attempts(policy: &Policy, attempts: u32, timeout: Duration, hint: Duration) -> Duration {
    let retries = attempts.saturating_sub(1);
    // Throttled attempts wait longer, in proportion to their base.
    let (base, throttled) = (policy.base().as_secs_f64(), policy.throttled_base().as_secs_f64());
    let factor = if base > 0.0 { (throttled / base).max(1.0) } else { 1.0 };
    let drawn = policy.elapsed_bounds(retries).map_or(Duration::ZERO, |(_, most)| most);
    let delays = Duration::try_from_secs_f64(drawn.as_secs_f64() * factor).unwrap_or(Duration::MAX);
    let capped = policy.cap().map_or(Duration::MAX, |cap| cap.saturating_mul(retries));
    // A hint comes before the delay, or before a share of its length.
    let above = Duration::try_from_secs_f64(hint.as_secs_f64() * policy.hint_spread().as_f64());
    let hints = hint.saturating_add(above.unwrap_or(Duration::MAX)).saturating_mul(retries);
    delays.min(capped.max(drawn)).saturating_add(hints).saturating_add(timeout.saturating_mul(attempts))
}

impl OutageScenarioBuilder {
    setters! {
        in 0;
        /// Sets the number of jobs the server processes per second. Default 1,000. Range: a billionth to a billion.
        capacity: f64 = capacity;
        /// Sets the maximum number of jobs at the server, including the one in progress. Default 3,000. Range: 1 to
        /// 67,108,864.
        queue: u32 = queue;
        /// Sets the number of client processes, each with its own guards. Default 10. Range: 1 to 67,108,864.
        processes: u32 = processes;
        /// Sets the one-way delay of messages. Default 5 ms. Range: up to an hour.
        one_way: Duration = micros(one_way);
        /// Sets the timeout of an attempt. Default 1 s. Range: at least a round trip.
        timeout: Duration = micros(timeout);
        /// Sets the end of the simulation. Default two minutes, or the time of 2,400 expected requests if that is
        /// longer: 24 [windows](super::OutageFigures::window). Range: up to 76 hours, and up to 67 million
        /// requests.
        horizon: Duration = micros(horizon);
        /// Sets the `Retry-After` of rejections: of a full queue, and of a server that rejects everything. Default
        /// none. It is a minimum delay, which each policy honors in its own way ([`HintMode`](stagger_core::HintMode),
        /// `max_hint`).
        retry_after: Duration = Some(micros(retry_after));
        /// Sets what happens to the store of a [`FleetBudget`](super::FleetBudget). Default [`StoreFaults::none`].
        /// Range: up to the horizon.
        store: StoreFaults = store;
    }

    /// Sets the kind, the start and the duration of the outage. Default [`OutageKind::Stall`], 20 s and 2 s.
    pub const fn outage(mut self, outage: OutageKind, start: Duration, duration: Duration) -> Self {
        (self.0.outage, self.0.start, self.0.duration) = (outage, micros(start), micros(duration));
        self
    }

    /// Builds the scenario.
    ///
    /// # Errors
    /// Returns all [`ScenarioProblem`]s at once.
    pub fn build(self) -> Result<OutageScenario, ScenarioError> {
        let OutageScenario { rate, capacity, queue, processes, one_way, timeout, start, duration, horizon, .. } =
            self.0;
        // 10 % above the mean, which random variation never exceeds.
        let requests = 1.1 * rate * Duration::from_micros(horizon).as_secs_f64();
        let too_many = requests > OutageScenario::MAX_REQUESTS as f64;
        ScenarioError::check([
            (ScenarioProblem::Clients, !COUNTS.contains(&processes) || too_many),
            (ScenarioProblem::Rate, !is_rate(rate) || !is_rate(capacity)),
            (ScenarioProblem::Backlog, !COUNTS.contains(&queue)),
            (ScenarioProblem::Network, one_way > micros(Network::MAX_DELAY)),
            (ScenarioProblem::Timeout, timeout < one_way.saturating_mul(2) || timeout > MAX_TIME),
            // A horizon of 0 is a problem of its own.
            (ScenarioProblem::BeyondHorizon, horizon > 0 && start.saturating_add(duration) > horizon),
            (ScenarioProblem::Horizon, horizon == 0 || horizon > MAX_TIME),
            (ScenarioProblem::Store, !self.0.store.are_within(horizon)),
        ])?;
        Ok(self.0)
    }
}
