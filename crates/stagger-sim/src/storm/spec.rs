use serde::{Deserialize, Serialize};

use crate::{occ, outage, reconnect};

/// What was simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScenarioSpec {
    /// A mass disconnect.
    Reconnect(ReconnectSpec),
    /// The mean field of a mass disconnect.
    Fluid(ReconnectSpec),
    /// Requests, and a server that stands still for a while.
    Outage(OutageSpec),
    /// Everyone writes one row.
    Occ(OccSpec),
}

/// The settings of a mass disconnect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReconnectSpec {
    /// How many lose their connection.
    pub clients: u64,
    /// How many the server lets in a second.
    pub rate: f64,
    /// How many may wait for that.
    pub backlog: u32,
    /// The least time that a message is underway.
    pub one_way_min_s: f64,
    /// The longest time that a message is underway.
    pub one_way_max_s: f64,
    /// Within what time the connections are lost.
    pub disconnect_window_s: f64,
    /// How long the server is down.
    pub down_for_s: f64,
    /// When the simulation ends at the latest.
    pub horizon_s: f64,
    /// What a client does first.
    pub first_attempt: FirstAttemptSpec,
    /// What the server tells those whom it refuses.
    pub retry_after: RetryAfterSpec,
    /// The hint that is the same for everyone, with `after`.
    pub retry_after_s: Option<f64>,
}

/// What a client does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FirstAttemptSpec {
    /// It waits for its policy's spread, or for the first delay.
    AfterDelay,
    /// It makes an attempt at once, or after its policy's spread.
    Immediate,
}

/// What a server tells those whom it refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RetryAfterSpec {
    /// Nothing.
    None,
    /// Not before: the same to everyone.
    Fixed,
    /// The next free slot, reserved for this client alone.
    Staggered,
    /// An appointment, with a ticket.
    Reservations,
}

/// The settings of an outage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OutageSpec {
    /// How many requests come in a second.
    pub rate: f64,
    /// How many jobs the server does in a second.
    pub capacity: f64,
    /// How many jobs there can be at the server.
    pub queue: u32,
    /// How many client processes there are.
    pub processes: u32,
    /// What the outage is.
    pub outage: OutageKindSpec,
    /// When it begins.
    pub start_s: f64,
    /// How long it lasts.
    pub duration_s: f64,
    /// How long a message is underway.
    pub one_way_s: f64,
    /// How long a client waits for an answer.
    pub timeout_s: f64,
    /// When the simulation ends.
    pub horizon_s: f64,
}

/// What an outage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OutageKindSpec {
    /// The server stands still.
    Stall,
    /// Everyone is turned away at once.
    Reject,
}

/// The settings of writers of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OccSpec {
    /// How many write the row.
    pub clients: u64,
    /// How long a message is underway, the mean.
    pub one_way_mean_s: f64,
    /// How long a message is underway, the standard deviation.
    pub one_way_deviation_s: f64,
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

impl ScenarioSpec {
    /// The mean field of this mass disconnect.
    #[must_use]
    pub fn fluid(scenario: &reconnect::ReconnectScenario) -> Self {
        Self::Fluid(scenario.into())
    }
}

impl From<&reconnect::ReconnectScenario> for ScenarioSpec {
    fn from(scenario: &reconnect::ReconnectScenario) -> Self {
        Self::Reconnect(scenario.into())
    }
}

impl From<&reconnect::ReconnectScenario> for ReconnectSpec {
    fn from(scenario: &reconnect::ReconnectScenario) -> Self {
        let (least, most) = scenario.one_way();
        let (retry_after, delay) = match scenario.retry_after() {
            reconnect::RetryAfter::None => (RetryAfterSpec::None, None),
            reconnect::RetryAfter::Fixed(after) => (RetryAfterSpec::Fixed, Some(after)),
            reconnect::RetryAfter::Staggered => (RetryAfterSpec::Staggered, None),
            reconnect::RetryAfter::Reservations => (RetryAfterSpec::Reservations, None),
        };
        Self {
            clients: scenario.clients(),
            rate: scenario.rate(),
            backlog: scenario.backlog(),
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
            },
            start_s: seconds(scenario.start),
            duration_s: seconds(scenario.duration),
            one_way_s: seconds(scenario.one_way),
            timeout_s: seconds(scenario.timeout),
            horizon_s: seconds(scenario.horizon),
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
