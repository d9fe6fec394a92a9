use serde::{Deserialize, Serialize};

use crate::{occ, outage, reconnect};

/// What was simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scene {
    /// A mass disconnect.
    Reconnect(ReconnectScene),
    /// The mean field of a mass disconnect.
    Fluid(ReconnectScene),
    /// Requests, and a server that stands still for a while.
    Outage(OutageScene),
    /// Everyone writes one row.
    Occ(OccScene),
}

/// The settings of a mass disconnect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReconnectScene {
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
    pub hits_within_s: f64,
    /// How long the server is down.
    pub down_for_s: f64,
    /// When the simulation ends at the latest.
    pub horizon_s: f64,
    /// What a client does first.
    pub first: First,
    /// What the server tells those whom it refuses.
    pub hints: Hints,
    /// The hint that is the same for everyone, with `after`.
    pub hint_s: Option<f64>,
}

/// What a client does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum First {
    /// It waits for its policy's spread, or for the first delay.
    AfterDelay,
    /// It makes an attempt at once, or after its policy's spread.
    AtOnce,
}

/// What a server tells those whom it refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Hints {
    /// Nothing.
    Silent,
    /// Not before: the same to everyone.
    After,
    /// The next free slot, reserved for this client alone.
    Slots,
    /// An appointment, with a ticket.
    Appointments,
}

/// The settings of an outage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OutageScene {
    /// How many requests come in a second.
    pub rate: f64,
    /// How many jobs the server does in a second.
    pub capacity: f64,
    /// How many jobs there can be at the server.
    pub queue: u32,
    /// How many client processes there are.
    pub processes: u32,
    /// What the outage is.
    pub outage: Outage,
    /// When it begins.
    pub begins_s: f64,
    /// How long it lasts.
    pub lasts_s: f64,
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
pub enum Outage {
    /// The server stands still.
    Stall,
    /// Everyone is turned away at once.
    Reject,
}

/// The settings of writers of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OccScene {
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

impl Scene {
    /// The mean field of this mass disconnect.
    #[must_use]
    pub fn fluid(scenario: &reconnect::Scenario) -> Self {
        Self::Fluid(scenario.into())
    }
}

impl From<&reconnect::Scenario> for Scene {
    fn from(scenario: &reconnect::Scenario) -> Self {
        Self::Reconnect(scenario.into())
    }
}

impl From<&reconnect::Scenario> for ReconnectScene {
    fn from(scenario: &reconnect::Scenario) -> Self {
        let (least, most) = scenario.one_way();
        let (hints, hint) = match scenario.hints() {
            reconnect::Hints::Silent => (Hints::Silent, None),
            reconnect::Hints::After(after) => (Hints::After, Some(after)),
            reconnect::Hints::Slots => (Hints::Slots, None),
            reconnect::Hints::Appointments => (Hints::Appointments, None),
        };
        Self {
            clients: scenario.clients(),
            rate: scenario.rate(),
            backlog: scenario.backlog(),
            one_way_min_s: least.as_secs_f64(),
            one_way_max_s: most.as_secs_f64(),
            hits_within_s: seconds(scenario.hits_within),
            down_for_s: seconds(scenario.up_at),
            horizon_s: seconds(scenario.horizon),
            first: match scenario.first {
                reconnect::First::AfterDelay => First::AfterDelay,
                reconnect::First::AtOnce => First::AtOnce,
            },
            hints,
            hint_s: hint.map(|hint| hint.as_secs_f64()),
        }
    }
}

impl From<&outage::Scenario> for Scene {
    fn from(scenario: &outage::Scenario) -> Self {
        let &outage::Scenario { rate, capacity, queue, processes, .. } = scenario;
        Self::Outage(OutageScene {
            rate,
            capacity,
            queue,
            processes,
            outage: match scenario.outage {
                outage::Outage::Stall => Outage::Stall,
                outage::Outage::Reject => Outage::Reject,
            },
            begins_s: seconds(scenario.begins),
            lasts_s: seconds(scenario.lasts),
            one_way_s: seconds(scenario.one_way),
            timeout_s: seconds(scenario.timeout),
            horizon_s: seconds(scenario.horizon),
        })
    }
}

impl From<&occ::Scenario> for Scene {
    fn from(scenario: &occ::Scenario) -> Self {
        Self::Occ(OccScene {
            clients: scenario.clients(),
            one_way_mean_s: scenario.mean / 1e6,
            one_way_deviation_s: scenario.deviation / 1e6,
        })
    }
}
