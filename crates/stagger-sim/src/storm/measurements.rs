use serde::{Deserialize, Serialize};

/// What a run that was not simulated but made, with real clients and a real server, says beyond its figures.
///
/// What the system does not tell, or nobody could ask, is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Measurements {
    /// Within what time the clients lost their connections.
    pub disconnect_window_s: f64,
    /// The least time that a message was underway when there was nothing else.
    pub one_way_min_s: f64,
    /// The longest time that a message was underway then.
    pub one_way_max_s: f64,
    /// How long the server was down.
    pub down_s: Option<f64>,
    /// What the server saw.
    pub server: Option<ServerCounts>,
    /// Connections that the kernel dropped because nobody had accepted those before them (`ListenOverflows`).
    pub listen_overflows: Option<u64>,
    /// Connections that the kernel dropped, for whatever reason (`ListenDrops`).
    pub listen_drops: Option<u64>,
    /// Requests for a connection that the kernel sent again: retries below those of any policy, without jitter
    /// (`TCPSynRetrans`).
    pub syn_retransmits: Option<u64>,
    /// All that the kernel sent again (`RetransSegs`).
    pub segments_retransmitted: Option<u64>,
    /// By how much the latest timer of the clients' process was late.
    pub max_timer_delay_s: f64,
    /// The share of its processors' time for which the machine was busy, in the busiest second.
    pub peak_cpu_ratio: Option<f64>,
    /// Why it may have been the machine and not the policy that shaped the curve, in words; empty if nothing says so.
    pub warnings: Vec<String>,
}

/// What a server saw, from the beginning of the scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ServerCounts {
    /// Connections of TCP that it accepted.
    pub arrived: u64,
    /// Those that it let in.
    pub accepted: u64,
    /// Those that it refused, for there was no room.
    pub rejected: u64,
    /// The most handshakes that were waiting or underway.
    pub peak_backlog: u64,
    /// WebSockets that were open at the end.
    pub active: u64,
    /// Those that arrived in each bin.
    pub arrivals: Vec<u32>,
    /// Those that it refused in each bin.
    pub rejections: Vec<u32>,
}
