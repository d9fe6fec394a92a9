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
    /// The command whose clients were measured; absent for the clients of this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// How the figures compare with those of the simulation; absent if they were not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
}

/// Measured figures beside those of several simulations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Agreement {
    /// Whether all figures agree; `null` if the machine may have determined the results.
    pub agrees: Option<bool>,
    /// Number of simulations, whose seeds differ.
    pub simulations: u32,
    /// The figures.
    pub figures: Vec<ComparedFigure>,
}

/// A figure as measured and as simulated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ComparedFigure {
    /// Its name among the figures of the run, or `burst_100ms`: the largest number of attempts that arrived within any 100 ms.
    pub figure: String,
    /// As measured; `null` if it does not exist.
    pub measured: Option<f64>,
    /// The mean of the simulations; `null` if it does not exist in one of them.
    pub simulated: Option<f64>,
    /// The lowest value of the simulations.
    pub simulated_min: Option<f64>,
    /// The highest value of the simulations.
    pub simulated_max: Option<f64>,
    /// Whether the measured value is within the range of the simulations, or beyond it by at most a tenth, or by so little that
    /// it is noise.
    pub agrees: bool,
}

impl ComparedFigure {
    /// Returns by what share of the simulated mean the measured value is above it, or, if negative, below it; `None` if one of
    /// them does not exist or the mean is 0.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        let (measured, simulated) = self.measured.zip(self.simulated).filter(|(_, simulated)| *simulated > 0.0)?;
        Some(measured / simulated - 1.0)
    }
}

impl Agreement {
    /// Returns the figure that differs most from the simulated mean, with its difference.
    #[must_use]
    pub fn largest_difference(&self) -> Option<(&ComparedFigure, f64)> {
        let differences = self.figures.iter().filter_map(|figure| Some((figure, figure.difference()?)));
        differences.max_by(|(_, one), (_, other)| one.abs().total_cmp(&other.abs()))
    }
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
