use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{TimeSeries, fluid, occ, outage, reconnect};

/// What came of a run: which of them, the kind of the scenario says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
#[non_exhaustive]
pub enum RunFigures {
    /// Of a mass disconnect.
    Reconnect(Box<ReconnectReport>),
    /// Of requests and a server that stands still for a while.
    Outage(OutageReport),
    /// Of everyone writing one row.
    Occ(OccReport),
    /// Of the mean field of a mass disconnect.
    Fluid(FluidReport),
}

/// What came of a mass disconnect. Times run from the beginning of the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReconnectReport {
    /// The clients there were.
    pub clients: u64,
    /// Attempts that were sent.
    pub attempts: u64,
    /// Attempts for each client, the mean.
    pub attempts_per_client: f64,
    /// The attempts of a client, half of them.
    pub attempts_p50: Option<u64>,
    /// The attempts of a client, 99 % of them.
    pub attempts_p99: Option<u64>,
    /// The most attempts of one client.
    pub attempts_max: u64,
    /// How many clients made that many attempts, from 0 on, up to 2,047.
    pub clients_by_attempts: Vec<u64>,
    /// Clients that are connected in the end.
    pub connected: u64,
    /// Attempts that connected nobody.
    pub wasted: u64,
    /// Clients that gave up.
    pub gave_up: u64,
    /// Clients that would have gone on after the horizon.
    pub unfinished: u64,
    /// The most arrivals in a tenth of a second.
    pub peak_100ms: u64,
    /// The most arrivals in a tenth of a second that begins after the first second.
    pub peak_100ms_after_1s: u64,
    /// The most arrivals in a second.
    pub peak_1s: u64,
    /// The most attempts of which no answer had come yet.
    pub peak_in_flight: u64,
    /// The most handshakes that were waiting or underway at the server.
    pub peak_backlog: u64,
    /// For how long more arrived than the server can take.
    pub overload_s: f64,
    /// When half of all clients were connected.
    pub t50_s: Option<f64>,
    /// When 99 % of all clients were connected.
    pub t99_s: Option<f64>,
    /// When the last client was connected.
    pub t100_s: Option<f64>,
    /// How long clients took from their own loss, the mean of those that were connected.
    pub recovered_mean_s: f64,
    /// How long clients took from their own loss, half of them.
    pub recovered_p50_s: Option<f64>,
    /// How long clients took from their own loss, 95 % of them.
    pub recovered_p95_s: Option<f64>,
    /// How long clients took from their own loss, 99 % of them.
    pub recovered_p99_s: Option<f64>,
    /// How long clients took from their own loss, for each hundredth of them; it ends where the others never came in.
    pub recovered_percentiles_s: Vec<f64>,
    /// How long a client slept between its attempts, the mean.
    pub waited_mean_s: f64,
    /// How unequally long clients took: p99 over p50, 1 where all fare alike.
    pub fairness_recovered: Option<f64>,
    /// How unequally often clients tried: p99 over p50, 1 where all fare alike.
    pub fairness_attempts: Option<f64>,
    /// How close to one attempt for each client.
    pub efficiency_attempts: Option<f64>,
    /// How close to the least time in which the server can take everyone.
    pub efficiency_time: Option<f64>,
    /// How close to half of that, which is the least mean time.
    pub efficiency_mean_time: Option<f64>,
    /// When the attempts of some clients arrived.
    pub sample_s: Vec<Vec<f64>>,
    /// What a bin of the series is wide.
    pub bin_s: f64,
    /// Attempts that arrived in each bin.
    pub arrivals: Vec<u32>,
    /// Clients that were connected in each bin.
    pub connects: Vec<u32>,
}

/// What came of an outage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OutageReport {
    /// Attempts for each request, from the outage on.
    pub amplification: f64,
    /// The share of the requests that succeeded, from the outage on.
    pub success_ratio: f64,
    /// The most attempts in a second, from the outage on.
    pub peak_1s: u64,
    /// How long after the outage it was over.
    pub recovery_s: Option<f64>,
    /// Whether it never was.
    pub metastable: bool,
    /// Requests that succeeded in the last ten seconds, as a share of those that come on average.
    pub final_goodput: f64,
    /// Attempts in the last ten seconds, for each request that comes on average.
    pub final_attempts_per_request: f64,
    /// Requests that a breaker refused.
    pub rejected: u64,
    /// What a bin of the series is wide.
    pub bin_s: f64,
    /// Requests that came in each bin.
    pub requests: Vec<u32>,
    /// Attempts that were sent in each bin.
    pub attempts: Vec<u32>,
    /// Requests that succeeded in each bin.
    pub successes: Vec<u32>,
}

/// What came of writers of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct OccReport {
    /// The clients there were.
    pub clients: u64,
    /// Writes that arrived, successful or not.
    pub calls: u64,
    /// Clients whose write was made.
    pub written: u64,
    /// Clients that gave up.
    pub gave_up: u64,
    /// When the last answer was heard.
    pub time_s: f64,
    /// Attempts for each client.
    pub calls_per_client: f64,
    /// The time as a multiple of two messages for each client.
    pub time_per_client: f64,
    /// `(c − 1)(τ − 1)`: 1 is the best that clients can do without knowing of each other.
    pub to_limit: f64,
    /// The calls as a multiple of those that the best could do with in the same time.
    pub calls_to_limit: Option<f64>,
}

/// What came of the mean field of a mass disconnect: numbers of clients are those to be expected, and seldom whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FluidReport {
    /// The clients there were.
    pub clients: u64,
    /// Attempts for each client, the mean.
    pub attempts_per_client: f64,
    /// The share of the clients that is connected in the end.
    pub connected_ratio: f64,
    /// The share of the clients that gave up.
    pub gave_up_ratio: f64,
    /// The most arrivals in a tenth of a second.
    pub peak_100ms: f64,
    /// The most arrivals in a second.
    pub peak_1s: f64,
    /// The most handshakes that were waiting or underway at the server.
    pub peak_backlog: f64,
    /// When half of all clients were connected.
    pub t50_s: Option<f64>,
    /// When 99 % of all clients were connected.
    pub t99_s: Option<f64>,
    /// When less than half a client was missing.
    pub t100_s: Option<f64>,
    /// How long clients took from their own loss, the mean of those that were connected.
    pub recovered_mean_s: f64,
    /// What a bin of the series is wide.
    pub bin_s: f64,
    /// Attempts that arrived in each bin.
    pub arrivals: Vec<f64>,
}

impl FluidReport {
    /// What shares come to with so many clients.
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
            // The 95th of a hundred.
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
