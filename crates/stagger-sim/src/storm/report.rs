//! The reports of the four kinds of runs: each figure is one line.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::metric::{Better, Importance, Metric, MetricField, Quantity, report};
use crate::engine::TimeSeries;
use crate::outage::Verdict;
use crate::{fluid, occ, outage, reconnect};

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

report! {
    /// The figures of a mass disconnect. Times are measured from the start of the scenario.
    ReconnectReport = RunFigures::Reconnect(figures: &reconnect::ReconnectFigures);

    metrics {
        /// Number of clients.
        clients: u64 = figures.clients, "clients" (Count, Neither, Detail);
        /// Maximum number of arrivals within 100 ms.
        peak_100ms: u64 = figures.peak(), "peak in 100ms" (Count, Lower, Primary);
        /// Maximum number of arrivals within one second.
        peak_1s: u64 = figures.peak_second(), "peak in 1s" (Count, Lower, Primary);
        /// Maximum number of arrivals within 100 ms after the first second.
        peak_100ms_after_1s: u64 =
            figures.arrivals.peak(Duration::from_secs(1)), "peak in 100ms after 1s" (Count, Neither, Detail);
        /// Total time during which more attempts arrived than the server accepts.
        overload_s: f64 = figures.overload().as_secs_f64(), "overload time" (Seconds, Lower, Detail);
        /// Number of attempts beyond what the server accepts within 100 ms, or within ten handshakes if they take
        /// longer, per client.
        excess_per_client: f64 = figures.excess_per_client(), "excess per client" (Number, Lower, Secondary);
        /// Number of attempts sent.
        attempts: u64 = figures.attempts, "attempts" (Count, Lower, Detail);
        /// Number of attempts that did not connect a client.
        wasted: u64 = figures.wasted(), "wasted attempts" (Count, Lower, Detail);
        /// Mean number of attempts per client.
        attempts_per_client: f64 = figures.attempts_per_client(), "attempts per client" (Number, Lower, Primary);
        /// Median number of attempts of the clients that finished.
        attempts_p50: Option<u64> = figures.attempts_p50, "attempts p50" (Count, Lower, Detail);
        /// 99th percentile of the number of attempts of the clients that finished.
        attempts_p99: Option<u64> = figures.attempts_p99, "attempts p99" (Count, Lower, Secondary);
        /// Maximum number of attempts of a client.
        attempts_max: u64 = figures.attempts_max, "attempts max" (Count, Lower, Detail);
        /// Median recovery time over all clients.
        recovered_p50_s: Option<f64> = seconds(figures.recovered_p50), "recovered p50" (Seconds, Lower, Primary);
        /// 95th percentile of the recovery times of all clients.
        recovered_p95_s: Option<f64> =
            // Index 94 is the 95th percentile.
            seconds(figures.recovered_percentiles.get(94).copied()), "recovered p95" (Seconds, Lower, Detail);
        /// 99th percentile of the recovery times of all clients.
        recovered_p99_s: Option<f64> = seconds(figures.recovered_p99), "recovered p99" (Seconds, Lower, Primary);
        /// Mean recovery time over connected clients: from the loss of a connection until the client is connected
        /// again.
        recovered_mean_s: f64 = figures.recovered_mean.as_secs_f64(), "recovered mean" (Seconds, Lower, Detail);
        /// Time at which half of all clients were connected.
        t50_s: Option<f64> = seconds(figures.t50), "50% back at" (Seconds, Lower, Detail);
        /// Time at which 99 % of all clients were connected.
        t99_s: Option<f64> = seconds(figures.t99), "99% back at" (Seconds, Lower, Detail);
        /// Time at which the last client was connected.
        t100_s: Option<f64> = seconds(figures.t100), "100% back at" (Seconds, Lower, Secondary);
        /// Number of clients connected at the end.
        connected: u64 = figures.connected, "connected" (Count, Higher, Detail);
        /// Number of clients that gave up; `None` if clients are not told apart, as by a server that counts attempts.
        gave_up: Option<u64> = (!figures.is_server_view).then_some(figures.gave_up), "gave up" (Count, Lower, Primary);
        /// Number of times that the server crashed again under the clients that returned.
        crashes: u64 = figures.crashes, "crashes" (Count, Lower, Detail);
        /// Number of attempts that a quiet period or a pacer let wait.
        held: Option<u64> = Some(figures.held), "held by guards" (Count, Neither, Detail);
        /// How far a single bucket would have fallen below zero that pays for every retry of a fleet with leases, as a
        /// ratio of its capacity.
        budget_overshoot: Option<f64> =
            figures.leases.map(|leases| leases.overshoot), "budget overshoot" (Ratio, Lower, Detail);
        /// The most that `budget_overshoot` may be after the faults of the store.
        budget_overshoot_bound: Option<f64> =
            figures.leases.map(|leases| leases.overshoot_bound), "budget overshoot bound" (Ratio, Neither, Detail);
        /// Number of clients that would have continued after the horizon; with the counts of a server, all that were
        /// not connected.
        unfinished: u64 = figures.unfinished, "unfinished" (Count, Lower, Detail);
        /// Maximum number of attempts in flight.
        peak_in_flight: u64 = figures.peak_in_flight, "peak in flight" (Count, Lower, Detail);
        /// Maximum number of pending handshakes at the server.
        peak_backlog: u64 = figures.peak_backlog, "peak backlog" (Count, Lower, Detail);
        /// Mean total time that a client waited between attempts.
        waited_mean_s: f64 = figures.waited_mean.as_secs_f64(), "mean wait" (Seconds, Lower, Detail);
        /// p99 / p50 of the recovery times; 1 if all clients are treated alike.
        fairness_recovered: Option<f64> = figures.fairness().recovered, "recovered p99 / p50" (Number, Neither, Detail);
        /// p99 / p50 of the number of attempts; 1 if all clients are treated alike.
        fairness_attempts: Option<f64> = figures.fairness().attempts, "attempts p99 / p50" (Number, Neither, Detail);
        /// Ratio of the minimum, one attempt per client, to the number of attempts.
        efficiency_attempts: Option<f64> = figures.efficiency().attempts, "attempt efficiency" (Ratio, Higher, Detail);
        /// Ratio of the minimum, the time the server needs to accept all clients, to `t100_s`.
        efficiency_time: Option<f64> = figures.efficiency().time, "time efficiency" (Ratio, Higher, Secondary);
        /// Ratio of the minimum mean recovery time, half the time the server needs to accept all clients, to
        /// `recovered_mean_s`.
        efficiency_mean_time: Option<f64> =
            figures.efficiency().mean_time, "mean time efficiency" (Ratio, Higher, Detail);
        /// Bin width of the time series.
        bin_s: f64 = BIN_S, "bin width" (Seconds, Neither, Detail);
    }

    series {
        /// Number of finished clients by their number of attempts, from 0 up to 2,047.
        clients_by_attempts: Vec<u64> = figures.clients_by_attempts.clone();
        /// Percentiles 1 to 100 of the recovery times of all clients; ends early if not all clients were connected.
        recovered_percentiles_s: Vec<f64> = figures.recovered_percentiles.iter().map(Duration::as_secs_f64).collect();
        /// Arrival times of the attempts of the sampled clients.
        sample_s: Vec<Vec<f64>> =
            figures.sample.iter().map(|times| times.iter().map(Duration::as_secs_f64).collect()).collect();
        /// Attempts that arrived, per bin.
        arrivals: Vec<u32> = counts(&figures.arrivals);
        /// Clients that were connected, per bin.
        connects: Vec<u32> = counts(&figures.connects);
    }
}

report! {
    /// The figures of an outage.
    OutageReport = RunFigures::Outage(figures: &outage::OutageFigures);

    metrics {
        /// Whether the system survived the outage.
        verdict: VerdictKind = figures.verdict().into(), "verdict" (Verdict, Lower, Detail);
        /// Whether the system is down at the horizon, and stays down; null if that is not decided.
        metastable: Option<bool> = stays_down(figures), "metastable" (Bool, Lower, Primary);
        /// Time from the end of the outage until the system is up for the rest of the simulation; 0 if it never fell.
        recovery_s: Option<f64> = seconds(figures.recovery()), "recovered after" (Seconds, Lower, Primary);
        /// Share of the requests that succeeded, from the start of the outage.
        success_ratio: f64 = figures.success_ratio(), "success" (Ratio, Higher, Primary);
        /// Number of attempts per request, from the start of the outage.
        amplification: f64 = figures.amplification(), "attempts per request" (Number, Lower, Primary);
        /// Maximum number of attempts within one second, from the start of the outage.
        peak_1s: u64 = figures.peak_second(), "peak in 1s" (Count, Lower, Primary);
        /// Number of successes in the last ten seconds relative to the mean number of requests.
        final_goodput: f64 = figures.final_goodput(), "final goodput" (Ratio, Higher, Secondary);
        /// Number of attempts in the last ten seconds relative to the mean number of requests.
        final_load: f64 = figures.final_load(), "final load" (Number, Lower, Secondary);
        /// Whether the system was down at any time from the start of the outage.
        fell: bool = figures.fell_at().is_some(), "fell" (Bool, Lower, Detail);
        /// Time at which it fell first, from the start of the simulation.
        fell_at_s: Option<f64> = seconds(figures.fell_at()), "fell at" (Seconds, Neither, Detail);
        /// Whether the system was down more than once.
        relapsed: bool = relapsed_at(figures).is_some(), "relapsed" (Bool, Lower, Detail);
        /// Time at which it fell for the second time, from the start of the simulation.
        relapsed_at_s: Option<f64> = seconds(relapsed_at(figures)), "relapsed at" (Seconds, Neither, Detail);
        /// Whether the system was down when the outage started.
        down_before_outage: bool = figures.was_down_before_outage(), "down before the outage" (Bool, Lower, Detail);
        /// Share of the requests of the last ten windows that succeeded.
        final_success_ratio: f64 = figures.final_success_ratio(), "final success" (Ratio, Higher, Detail);
        /// Width of the windows by which the verdict is decided.
        window_s: f64 = figures.window().as_secs_f64(), "window" (Seconds, Neither, Detail);
        /// Shortest horizon at which the system can be seen to recover.
        min_horizon_s: f64 = figures.min_horizon().as_secs_f64(), "minimum horizon" (Seconds, Neither, Detail);
        /// Number of requests that a breaker, a quiet period or a pacer rejected.
        rejected: u64 = figures.rejected, "rejected by guards" (Count, Neither, Secondary);
        /// Number of times that a quiet period or a pacer let a request wait.
        held: Option<u64> = Some(figures.held), "held by guards" (Count, Neither, Detail);
        /// Number of retries from the start of the outage.
        retries: Option<u64> = Some(figures.retries), "retries" (Count, Lower, Detail);
        /// How far a single bucket would have fallen below zero that pays for every retry of a fleet with leases, as a
        /// ratio of its capacity.
        budget_overshoot: Option<f64> =
            figures.leases.map(|leases| leases.overshoot), "budget overshoot" (Ratio, Lower, Detail);
        /// The most that `budget_overshoot` may be after the faults of the store.
        budget_overshoot_bound: Option<f64> =
            figures.leases.map(|leases| leases.overshoot_bound), "budget overshoot bound" (Ratio, Neither, Detail);
        /// Time from the end of the last fault of the store until all processes had leases again.
        leases_restored_s: Option<f64> =
            seconds(figures.leases.and_then(|leases| leases.restored)), "leases back after" (Seconds, Lower, Detail);
        /// Maximum number of processes that used their local share of the budget at the same time.
        local_shares: Option<u64> =
            figures.leases.map(|leases| leases.local_max.into()), "processes without leases" (Count, Neither, Detail);
        /// Maximum number of reports of a process to the store.
        store_reports_max: Option<u64> =
            figures.leases.map(|leases| leases.reports_max), "reports of a process" (Count, Lower, Detail);
        /// Bin width of the time series.
        bin_s: f64 = BIN_S, "bin width" (Seconds, Neither, Detail);
    }

    series {
        /// Requests that arrived, per bin.
        requests: Vec<u32> = counts(&figures.requests);
        /// Attempts sent, per bin.
        attempts: Vec<u32> = counts(&figures.attempts);
        /// Requests that succeeded, per bin.
        successes: Vec<u32> = counts(&figures.successes);
    }
}

report! {
    /// The figures of optimistic concurrency control.
    OccReport = RunFigures::Occ(figures: &occ::OccFigures);

    metrics {
        /// Number of clients.
        clients: u64 = figures.clients, "clients" (Count, Neither, Detail);
        /// Number of writes that arrived, successful or not.
        calls: u64 = figures.calls, "calls" (Count, Lower, Primary);
        /// Number of attempts per client.
        calls_per_client: f64 = figures.calls_per_client(), "calls per client" (Number, Lower, Primary);
        /// Time at which the last answer was received.
        time_s: f64 = figures.time.as_secs_f64(), "completed at" (Seconds, Lower, Primary);
        /// Time per client as a multiple of the mean time of two messages.
        time_per_client: f64 = figures.time_per_client(), "time / minimum" (Number, Lower, Secondary);
        /// `(c − 1)(τ − 1)`; the minimum is 1 for clients that do not know of each other.
        to_limit: f64 = figures.to_limit(), "ratio to limit" (Number, Lower, Primary);
        /// Number of calls relative to the optimum for the same time.
        calls_to_limit: Option<f64> = figures.calls_to_limit(), "calls / minimum" (Number, Lower, Secondary);
        /// Number of clients whose write succeeded.
        written: u64 = figures.written, "written" (Count, Higher, Detail);
        /// Number of clients that gave up.
        gave_up: u64 = figures.gave_up, "gave up" (Count, Lower, Primary);
    }

    series {}
}

report! {
    /// The figures of a mass disconnect, computed with the fluid model. Numbers of clients are expected values, and
    /// therefore fractional.
    FluidReport = RunFigures::Fluid(clients: u64, figures: &fluid::FluidFigures);

    metrics {
        /// Number of clients.
        clients: u64 = clients, "clients" (Count, Neither, Detail);
        /// Maximum number of arrivals within 100 ms.
        peak_100ms: f64 = figures.peak() * clients as f64, "peak in 100ms" (Count, Lower, Primary);
        /// Maximum number of arrivals within one second.
        peak_1s: f64 = figures.peak_second() * clients as f64, "peak in 1s" (Count, Lower, Primary);
        /// Mean number of attempts per client.
        attempts_per_client: f64 = figures.attempts_per_client, "attempts per client" (Number, Lower, Primary);
        /// Mean recovery time over connected clients: from the loss of a connection until the client is connected
        /// again.
        recovered_mean_s: f64 = figures.recovered_mean.as_secs_f64(), "recovered mean" (Seconds, Lower, Primary);
        /// Time at which half of all clients were connected.
        t50_s: Option<f64> = seconds(figures.t50), "50% back at" (Seconds, Lower, Primary);
        /// Time at which 99 % of all clients were connected.
        t99_s: Option<f64> = seconds(figures.t99), "99% back at" (Seconds, Lower, Primary);
        /// Time at which less than half a client was missing.
        t100_s: Option<f64> = seconds(figures.t100), "100% back at" (Seconds, Lower, Secondary);
        /// Share of the clients connected at the end.
        connected_ratio: f64 = figures.connected, "connected" (Ratio, Higher, Detail);
        /// Share of the clients that gave up.
        gave_up_ratio: f64 = figures.gave_up, "gave up" (Ratio, Lower, Primary);
        /// Maximum number of pending handshakes at the server.
        peak_backlog: f64 = figures.peak_backlog * clients as f64, "peak backlog" (Count, Lower, Detail);
        /// Bin width of the time series.
        bin_s: f64 = BIN_S, "bin width" (Seconds, Neither, Detail);
    }

    series {
        /// Attempts that arrived, per bin.
        arrivals: Vec<f64> = figures.arrivals.iter().map(|share| share * clients as f64).collect();
    }
}

impl From<&reconnect::ReconnectFigures> for RunFigures {
    fn from(figures: &reconnect::ReconnectFigures) -> Self {
        Self::Reconnect(Box::new(ReconnectReport::from_figures(figures)))
    }
}

impl From<&outage::OutageFigures> for RunFigures {
    fn from(figures: &outage::OutageFigures) -> Self {
        Self::Outage(OutageReport::from_figures(figures))
    }
}

impl From<&occ::OccFigures> for RunFigures {
    fn from(figures: &occ::OccFigures) -> Self {
        Self::Occ(OccReport::from_figures(figures))
    }
}

impl From<FluidReport> for RunFigures {
    fn from(figures: FluidReport) -> Self {
        Self::Fluid(figures)
    }
}

const BIN_S: f64 = TimeSeries::BIN_WIDTH.as_millis() as f64 / 1e3;

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

fn stays_down(figures: &outage::OutageFigures) -> Option<bool> {
    let verdict = figures.verdict();
    (verdict != Verdict::NotDecided).then(|| verdict.is_down())
}

fn relapsed_at(figures: &outage::OutageFigures) -> Option<Duration> {
    match figures.state_at_horizon() {
        Verdict::Relapsed { at, .. } => Some(at),
        _ => None,
    }
}

fn counts(series: &TimeSeries) -> Vec<u32> {
    series.counts().to_vec()
}

/// Whether a system survives an outage. The metrics of the run say when it fell, recovered and relapsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum VerdictKind {
    /// At least 90 % of the requests of every window succeeded.
    NeverFell,
    /// The system was down once, and is up at the horizon.
    Recovered,
    /// The system was down more than once.
    Relapsed,
    /// The system was down once, is down at the horizon, and stays down.
    StillDown,
    /// The horizon is too short: the system may recover after it, or fall.
    NotDecided,
}

impl VerdictKind {
    /// All kinds, the best first.
    pub const ALL: [Self; 5] = [Self::NeverFell, Self::Recovered, Self::Relapsed, Self::StillDown, Self::NotDecided];

    /// Returns the name in the document and in assertions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NeverFell => "never-fell",
            Self::Recovered => "recovered",
            Self::Relapsed => "relapsed",
            Self::StillDown => "still-down",
            Self::NotDecided => "not-decided",
        }
    }
}

impl From<Verdict> for VerdictKind {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::NeverFell => Self::NeverFell,
            Verdict::Recovered { .. } => Self::Recovered,
            Verdict::Relapsed { .. } => Self::Relapsed,
            Verdict::StillDown { .. } => Self::StillDown,
            Verdict::NotDecided => Self::NotDecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_its_position_and_the_name_of_the_document() {
        for (verdict, position) in VerdictKind::ALL.into_iter().zip(0..) {
            assert_eq!(verdict as u8, position, "{verdict:?}");
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.name());
        }
    }
}
