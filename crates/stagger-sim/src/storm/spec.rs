//! Scenarios as they are written to a document.

use serde::{Deserialize, Serialize};

use super::metric::Metric;
use super::report::{FluidReport, OccReport, OutageReport, ReconnectReport};
use crate::{occ, outage, reconnect};

/// A scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScenarioSpec {
    /// A mass disconnect.
    Reconnect(ReconnectSpec),
    /// A mass disconnect, computed with the fluid model.
    Fluid(ReconnectSpec),
    /// An outage under continuous traffic.
    Outage(OutageSpec),
    /// Optimistic concurrency control on one row.
    Occ(OccSpec),
}

/// The settings of a mass disconnect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReconnectSpec {
    /// Number of clients that lose their connections.
    pub clients: u64,
    /// Number of handshakes per second that the server accepts.
    pub rate: f64,
    /// Maximum number of pending handshakes.
    pub backlog: u32,
    /// Minimum one-way delay of a message.
    pub one_way_min_s: f64,
    /// Maximum one-way delay of a message.
    pub one_way_max_s: f64,
    /// Time within which the connections are lost.
    pub disconnect_window_s: f64,
    /// Time for which the server is down.
    pub down_for_s: f64,
    /// Time at which the simulation ends at the latest.
    pub horizon_s: f64,
    /// When a client makes its first attempt.
    pub first_attempt: FirstAttemptSpec,
    /// The hint for rejected clients.
    pub retry_after: RetryAfterSpec,
    /// The delay of the hint, with `fixed`.
    pub retry_after_s: Option<f64>,
    /// When the server crashes again; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash_loop: Option<CrashLoopSpec>,
    /// Number of processes that the clients are grouped into; absent if each is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// What happens to the store of a fleet's budget; absent if nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreSpec>,
}

/// What happens to the store of a fleet's budget.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct StoreSpec {
    /// When no process can reach it, from and until.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_s: Option<[f64; 2]>,
    /// Whether it returns without its data.
    pub loses_data: bool,
    /// When some processes cannot reach it, from and until.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_s: Option<[f64; 2]>,
    /// The share of these processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_ratio: Option<f64>,
}

/// When a server crashes again under the clients that return.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CrashLoopSpec {
    /// Maximum number of crashes.
    pub most: u32,
    /// The server crashes when more attempts than this arrive within a second.
    pub above: f64,
}

/// When a client makes its first attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FirstAttemptSpec {
    /// After the policy's spread, or the first delay.
    AfterDelay,
    /// Immediately, or after the policy's spread.
    Immediate,
}

/// The hint for rejected clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RetryAfterSpec {
    /// No hint.
    None,
    /// The same minimum delay for all clients.
    Fixed,
    /// The next free time, reserved for this client.
    Staggered,
    /// A reservation with a token.
    Reservations,
}

/// The settings of an outage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OutageSpec {
    /// Mean number of requests per second.
    pub rate: f64,
    /// Number of jobs the server processes per second.
    pub capacity: f64,
    /// Maximum number of jobs at the server.
    pub queue: u32,
    /// Number of client processes.
    pub processes: u32,
    /// The behavior of the server during the outage.
    pub outage: OutageKindSpec,
    /// Start of the outage.
    pub start_s: f64,
    /// Duration of the outage.
    pub duration_s: f64,
    /// One-way delay of a message.
    pub one_way_s: f64,
    /// Timeout of an attempt.
    pub timeout_s: f64,
    /// End of the simulation.
    pub horizon_s: f64,
    /// The hint in a rejection; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<f64>,
    /// What happens to the store of a fleet's budget; absent if nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreSpec>,
}

/// The behavior of a server during an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OutageKindSpec {
    /// The server stalls.
    Stall,
    /// The server rejects all attempts at once.
    Reject,
    /// The server refuses all attempts at once because they are too many.
    Throttle,
}

/// The settings of an optimistic concurrency scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OccSpec {
    /// Number of clients that write the row.
    pub clients: u64,
    /// Mean one-way delay of a message.
    pub one_way_mean_s: f64,
    /// Standard deviation of the one-way delay of a message.
    pub one_way_deviation_s: f64,
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

impl ScenarioSpec {
    /// Creates the specification of a mass disconnect that is computed with the fluid model.
    #[must_use]
    pub fn fluid(scenario: &reconnect::ReconnectScenario) -> Self {
        Self::Fluid(scenario.into())
    }

    /// Returns the metrics of the scenario's runs, in the order of tables.
    #[must_use]
    pub const fn metrics(&self) -> &'static [Metric] {
        match self {
            Self::Reconnect(_) => ReconnectReport::METRICS,
            Self::Fluid(_) => FluidReport::METRICS,
            Self::Outage(_) => OutageReport::METRICS,
            Self::Occ(_) => OccReport::METRICS,
        }
    }
}

impl StoreSpec {
    fn of(faults: outage::StoreFaults) -> Option<Self> {
        if faults == outage::StoreFaults::none() {
            return None;
        }
        let times = |times: Option<[u64; 2]>| times.map(|times| times.map(seconds));
        let (down_s, cut_s) = (times(faults.down), times(faults.cut));
        let cut_ratio = cut_s.map(|_| faults.cut_ratio.as_f64());
        Some(Self { down_s, loses_data: faults.is_lost, cut_s, cut_ratio })
    }
}

impl From<&reconnect::ReconnectScenario> for ScenarioSpec {
    fn from(scenario: &reconnect::ReconnectScenario) -> Self {
        Self::Reconnect(scenario.into())
    }
}

impl From<&reconnect::ReconnectScenario> for ReconnectSpec {
    fn from(scenario: &reconnect::ReconnectScenario) -> Self {
        let (least, most) = scenario.network.bounds();
        let (retry_after, delay) = match scenario.retry_after {
            reconnect::RetryAfter::None => (RetryAfterSpec::None, None),
            reconnect::RetryAfter::Fixed(after) => (RetryAfterSpec::Fixed, Some(after)),
            reconnect::RetryAfter::Staggered => (RetryAfterSpec::Staggered, None),
            reconnect::RetryAfter::Reservations => (RetryAfterSpec::Reservations, None),
        };
        Self {
            clients: scenario.clients(),
            rate: scenario.rate(),
            backlog: scenario.backlog,
            one_way_min_s: least.as_secs_f64(),
            one_way_max_s: most.as_secs_f64(),
            disconnect_window_s: seconds(scenario.disconnect_window),
            down_for_s: seconds(scenario.up_at),
            horizon_s: seconds(scenario.horizon),
            first_attempt: match scenario.first_attempt {
                reconnect::FirstAttempt::AfterDelay => FirstAttemptSpec::AfterDelay,
                reconnect::FirstAttempt::Immediate => FirstAttemptSpec::Immediate,
            },
            retry_after,
            retry_after_s: delay.map(|delay| delay.as_secs_f64()),
            crash_loop: scenario
                .crash_loop
                .map(|crash_loop| CrashLoopSpec { most: crash_loop.most, above: crash_loop.above }),
            processes: scenario.processes,
            store: StoreSpec::of(scenario.store),
        }
    }
}

impl From<&outage::OutageScenario> for ScenarioSpec {
    fn from(scenario: &outage::OutageScenario) -> Self {
        let &outage::OutageScenario { rate, capacity, queue, processes, .. } = scenario;
        Self::Outage(OutageSpec {
            rate,
            capacity,
            queue,
            processes,
            outage: match scenario.outage {
                outage::OutageKind::Stall => OutageKindSpec::Stall,
                outage::OutageKind::Reject => OutageKindSpec::Reject,
                outage::OutageKind::Throttle => OutageKindSpec::Throttle,
            },
            start_s: seconds(scenario.start),
            duration_s: seconds(scenario.duration),
            one_way_s: seconds(scenario.one_way),
            timeout_s: seconds(scenario.timeout),
            horizon_s: seconds(scenario.horizon),
            retry_after_s: scenario.retry_after.map(seconds),
            store: StoreSpec::of(scenario.store),
        })
    }
}

impl From<&occ::OccScenario> for ScenarioSpec {
    fn from(scenario: &occ::OccScenario) -> Self {
        Self::Occ(OccSpec {
            clients: scenario.clients(),
            one_way_mean_s: scenario.mean / 1e6,
            one_way_deviation_s: scenario.deviation / 1e6,
        })
    }
}
