use serde::{Deserialize, Serialize};

/// Measurements of a run with real clients and a real server, in addition to its figures.
///
/// A value that the system does not provide is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Measurements {
    /// Time within which the clients lost their connections.
    pub disconnect_window_s: f64,
    /// Minimum one-way delay without other load.
    pub one_way_min_s: f64,
    /// Maximum one-way delay without other load.
    pub one_way_max_s: f64,
    /// Time for which the server was down.
    pub down_s: Option<f64>,
    /// Counters of the server.
    pub server: Option<ServerCounts>,
    /// Connections that the kernel dropped because the accept queue was full (`ListenOverflows`).
    pub listen_overflows: Option<u64>,
    /// Connections that the kernel dropped for any reason (`ListenDrops`).
    pub listen_drops: Option<u64>,
    /// Connection requests that the kernel retransmitted: retries below the policy, without jitter (`TCPSynRetrans`).
    pub syn_retransmits: Option<u64>,
    /// Segments that the kernel retransmitted (`RetransSegs`).
    pub segments_retransmitted: Option<u64>,
    /// Maximum delay of a timer of the client process.
    pub max_timer_delay_s: f64,
    /// CPU utilization of the machine in its busiest second, as a ratio.
    pub peak_cpu_ratio: Option<f64>,
    /// Reasons why the machine instead of the policy may have determined the results; empty if there are none.
    pub warnings: Vec<String>,
}

/// Counters of a server, from the start of the scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ServerCounts {
    /// TCP connections accepted from the kernel.
    pub arrived: u64,
    /// Connections admitted.
    pub accepted: u64,
    /// Connections rejected because the backlog was full.
    pub rejected: u64,
    /// Maximum number of pending handshakes.
    pub peak_backlog: u64,
    /// WebSockets open at the end.
    pub active: u64,
    /// Arrivals per bin.
    pub arrivals: Vec<u32>,
    /// Rejections per bin.
    pub rejections: Vec<u32>,
}
