use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{TimeSeries, fluid, occ, outage, reconnect};

/// The figures of a run. The kind of the scenario determines the variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
#[non_exhaustive]
pub enum RunFigures {
    /// Figures of a mass disconnect.
    Reconnect(Box<ReconnectReport>),
    /// Figures of an outage.
    Outage(OutageReport),
    /// Figures of optimistic concurrency control.
    Occ(OccReport),
    /// Figures of a mass disconnect, computed with the fluid model.
    Fluid(FluidReport),
}

/// The figures of a mass disconnect. Times are measured from the start of the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReconnectReport {
    /// Number of clients.
    pub clients: u64,
    /// Number of attempts sent.
    pub attempts: u64,
    /// Mean number of attempts per client.
    pub attempts_per_client: f64,
    /// Median number of attempts of the clients that finished.
    pub attempts_p50: Option<u64>,
    /// 99th percentile of the number of attempts of the clients that finished.
    pub attempts_p99: Option<u64>,
    /// Maximum number of attempts of a client.
    pub attempts_max: u64,
    /// Number of finished clients by their number of attempts, from 0 up to 2,047.
    pub clients_by_attempts: Vec<u64>,
    /// Number of clients connected at the end.
    pub connected: u64,
    /// Number of attempts that did not connect a client.
    pub wasted: u64,
    /// Number of clients that gave up.
    pub gave_up: u64,
    /// Number of clients that would have continued after the horizon.
    pub unfinished: u64,
    /// Maximum number of arrivals within 100 ms.
    pub peak_100ms: u64,
    /// Maximum number of arrivals within 100 ms after the first second.
    pub peak_100ms_after_1s: u64,
    /// Maximum number of arrivals within one second.
    pub peak_1s: u64,
    /// Maximum number of attempts in flight.
    pub peak_in_flight: u64,
    /// Maximum number of pending handshakes at the server.
    pub peak_backlog: u64,
    /// Total time during which more attempts arrived than the server accepts.
    pub overload_s: f64,
    /// Time at which half of all clients were connected.
    pub t50_s: Option<f64>,
    /// Time at which 99 % of all clients were connected.
    pub t99_s: Option<f64>,
    /// Time at which the last client was connected.
    pub t100_s: Option<f64>,
    /// Mean recovery time: from the loss of a connection until the client is connected again, over connected clients.
    pub recovered_mean_s: f64,
    /// Median recovery time over all clients.
    pub recovered_p50_s: Option<f64>,
    /// 95th percentile of the recovery times of all clients.
    pub recovered_p95_s: Option<f64>,
    /// 99th percentile of the recovery times of all clients.
    pub recovered_p99_s: Option<f64>,
    /// Percentiles 1 to 100 of the recovery times of all clients; ends early if not all clients were connected.
    pub recovered_percentiles_s: Vec<f64>,
    /// Mean total time that a client waited between attempts.
    pub waited_mean_s: f64,
    /// p99 / p50 of the recovery times; 1 if all clients are treated alike.
    pub fairness_recovered: Option<f64>,
    /// p99 / p50 of the number of attempts; 1 if all clients are treated alike.
    pub fairness_attempts: Option<f64>,
    /// Ratio of the minimum, one attempt per client, to the number of attempts.
    pub efficiency_attempts: Option<f64>,
    /// Ratio of the minimum, the time the server needs to accept all clients, to `t100_s`.
    pub efficiency_time: Option<f64>,
    /// Ratio of the minimum mean recovery time, half the time the server needs to accept all clients, to
    /// `recovered_mean_s`.
    pub efficiency_mean_time: Option<f64>,
    /// Arrival times of the attempts of the sampled clients.
    pub sample_s: Vec<Vec<f64>>,
    /// Bin width of the time series.
    pub bin_s: f64,
    /// Attempts that arrived, per bin.
    pub arrivals: Vec<u32>,
    /// Clients that were connected, per bin.
    pub connects: Vec<u32>,
}

/// The figures of an outage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OutageReport {
    /// Number of attempts per request, from the start of the outage.
    pub amplification: f64,
    /// Share of the requests that succeeded, from the start of the outage.
    pub success_ratio: f64,
    /// Maximum number of attempts within one second, from the start of the outage.
    pub peak_1s: u64,
    /// Time from the end of the outage to recovery.
    pub recovery_s: Option<f64>,
    /// Whether the system did not recover.
    pub metastable: bool,
    /// Number of successes in the last ten seconds relative to the mean number of requests.
    pub final_goodput: f64,
    /// Number of attempts in the last ten seconds relative to the mean number of requests.
    pub final_attempts_per_request: f64,
    /// Number of requests that a breaker rejected.
    pub rejected: u64,
    /// Bin width of the time series.
    pub bin_s: f64,
    /// Requests that arrived, per bin.
    pub requests: Vec<u32>,
    /// Attempts sent, per bin.
    pub attempts: Vec<u32>,
    /// Requests that succeeded, per bin.
    pub successes: Vec<u32>,
}

/// The figures of optimistic concurrency control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OccReport {
    /// Number of clients.
    pub clients: u64,
    /// Number of writes that arrived, successful or not.
    pub calls: u64,
    /// Number of clients whose write succeeded.
    pub written: u64,
    /// Number of clients that gave up.
    pub gave_up: u64,
    /// Time at which the last answer was received.
    pub time_s: f64,
    /// Number of attempts per client.
    pub calls_per_client: f64,
    /// Time per client as a multiple of the mean time of two messages.
    pub time_per_client: f64,
    /// `(c − 1)(τ − 1)`; the minimum is 1 for clients that do not know of each other.
    pub to_limit: f64,
    /// Number of calls relative to the optimum for the same time.
    pub calls_to_limit: Option<f64>,
}

/// The figures of a mass disconnect, computed with the fluid model. Numbers of clients are expected values, and
/// therefore fractional.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FluidReport {
    /// Number of clients.
    pub clients: u64,
    /// Mean number of attempts per client.
    pub attempts_per_client: f64,
    /// Share of the clients connected at the end.
    pub connected_ratio: f64,
    /// Share of the clients that gave up.
    pub gave_up_ratio: f64,
    /// Maximum number of arrivals within 100 ms.
    pub peak_100ms: f64,
    /// Maximum number of arrivals within one second.
    pub peak_1s: f64,
    /// Maximum number of pending handshakes at the server.
    pub peak_backlog: f64,
    /// Time at which half of all clients were connected.
    pub t50_s: Option<f64>,
    /// Time at which 99 % of all clients were connected.
    pub t99_s: Option<f64>,
    /// Time at which less than half a client was missing.
    pub t100_s: Option<f64>,
    /// Mean recovery time: from the loss of a connection until the client is connected again, over connected clients.
    pub recovered_mean_s: f64,
    /// Bin width of the time series.
    pub bin_s: f64,
    /// Attempts that arrived, per bin.
    pub arrivals: Vec<f64>,
}

impl FluidReport {
    /// Scales the figures of the fluid model to this number of clients.
    #[must_use]
    pub fn from_figures(clients: u64, figures: &fluid::FluidFigures) -> Self {
        let whole = clients as f64;
        let arrivals: Vec<f64> = figures.arrivals.iter().map(|share| share * whole).collect();
        Self {
            clients,
            attempts_per_client: figures.attempts_per_client,
            connected_ratio: figures.connected,
            gave_up_ratio: figures.gave_up,
            peak_100ms: figures.peak() * whole,
            peak_1s: (1..=arrivals.len())
                .map(|end| arrivals[end.saturating_sub(10)..end].iter().sum())
                .fold(0.0, f64::max),
            peak_backlog: figures.peak_backlog * whole,
            t50_s: seconds(figures.t50),
            t99_s: seconds(figures.t99),
            t100_s: seconds(figures.t100),
            recovered_mean_s: figures.recovered_mean.as_secs_f64(),
            bin_s: BIN_S,
            arrivals,
        }
    }
}

impl From<FluidReport> for RunFigures {
    fn from(figures: FluidReport) -> Self {
        Self::Fluid(figures)
    }
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

fn counts(series: &TimeSeries) -> Vec<u32> {
    series.counts().to_vec()
}

const BIN_S: f64 = TimeSeries::BIN_WIDTH.as_millis() as f64 / 1e3;

impl From<&reconnect::ReconnectFigures> for RunFigures {
    fn from(figures: &reconnect::ReconnectFigures) -> Self {
        let (efficiency, fairness) = (figures.efficiency(), figures.fairness());
        Self::Reconnect(Box::new(ReconnectReport {
            clients: figures.clients,
            attempts: figures.attempts,
            attempts_per_client: figures.attempts_per_client(),
            attempts_p50: figures.attempts_p50,
            attempts_p99: figures.attempts_p99,
            attempts_max: figures.attempts_max,
            clients_by_attempts: figures.clients_by_attempts.clone(),
            connected: figures.connected,
            wasted: figures.wasted(),
            gave_up: figures.gave_up,
            unfinished: figures.unfinished,
            peak_100ms: figures.peak(),
            peak_100ms_after_1s: figures.peak_from(Duration::from_secs(1)),
            peak_1s: figures.peak_second(),
            peak_in_flight: figures.peak_in_flight,
            peak_backlog: figures.peak_backlog,
            overload_s: figures.overload().as_secs_f64(),
            t50_s: seconds(figures.t50),
            t99_s: seconds(figures.t99),
            t100_s: seconds(figures.t100),
            recovered_mean_s: figures.recovered_mean.as_secs_f64(),
            recovered_p50_s: seconds(figures.recovered_p50),
            // Index 94 is the 95th percentile.
            recovered_p95_s: seconds(figures.recovered_percentiles.get(94).copied()),
            recovered_p99_s: seconds(figures.recovered_p99),
            recovered_percentiles_s: figures.recovered_percentiles.iter().map(Duration::as_secs_f64).collect(),
            waited_mean_s: figures.waited_mean.as_secs_f64(),
            fairness_recovered: fairness.recovered,
            fairness_attempts: fairness.attempts,
            efficiency_attempts: efficiency.attempts,
            efficiency_time: efficiency.time,
            efficiency_mean_time: efficiency.mean_time,
            sample_s: figures.sample.iter().map(|times| times.iter().map(Duration::as_secs_f64).collect()).collect(),
            bin_s: BIN_S,
            arrivals: counts(&figures.arrivals),
            connects: counts(&figures.connects),
        }))
    }
}

impl From<&outage::OutageFigures> for RunFigures {
    fn from(figures: &outage::OutageFigures) -> Self {
        Self::Outage(OutageReport {
            amplification: figures.amplification(),
            success_ratio: figures.success_ratio(),
            peak_1s: figures.peak_second(),
            recovery_s: seconds(figures.recovery()),
            metastable: figures.is_metastable(),
            final_goodput: figures.final_goodput(),
            final_attempts_per_request: figures.final_attempts_per_request(),
            rejected: figures.rejected,
            bin_s: BIN_S,
            requests: counts(&figures.requests),
            attempts: counts(&figures.attempts),
            successes: counts(&figures.successes),
        })
    }
}

impl From<&occ::OccFigures> for RunFigures {
    fn from(figures: &occ::OccFigures) -> Self {
        Self::Occ(OccReport {
            clients: figures.clients,
            calls: figures.calls,
            written: figures.written,
            gave_up: figures.gave_up,
            time_s: figures.time.as_secs_f64(),
            calls_per_client: figures.calls_per_client(),
            time_per_client: figures.time_per_client(),
            to_limit: figures.to_limit(),
            calls_to_limit: figures.calls_to_limit(),
        })
    }
}
