//! The document of an outage: the figures of each policy as measured and as simulated, and their comparison.

use serde::Serialize;
use stagger_sim::TimeSeries;
use stagger_sim::storm::VerdictKind;
use stagger_sim::system::SystemFigures;

use super::settings::OutageSettings;
use crate::compare::{is_far, is_within};

/// Output of `stagger drill outage --json`: schema `stagger.drill-outage/1`.
///
/// Durations are in seconds, ratios from 0 to 1, and series in bins of 100 ms. Later versions of the schema may add
/// fields; existing fields keep their names and meanings.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "stagger.drill-outage/1"))]
pub(super) struct Document {
    /// Always `stagger.drill-outage/1`.
    schema: &'static str,
    /// The load, the server and its fault.
    pub(super) scenario: Scenario,
    /// The policies, in the order in which they ran.
    pub(super) policies: Vec<PolicyEntry>,
}

/// The load, the server and its fault.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Scenario {
    /// Requests per second, at equal intervals.
    pub(super) rate: f64,
    /// Number of workers of the server.
    pub(super) workers: u32,
    /// Service time of an attempt.
    pub(super) service_s: f64,
    /// Number of attempts that may be at the server, waiting or in service.
    pub(super) backlog: u32,
    /// Timeout of an attempt.
    pub(super) timeout_s: f64,
    /// Start of the fault.
    pub(super) fault_start_s: f64,
    /// End of the fault.
    pub(super) fault_end_s: f64,
    /// Factor of the service time of what is begun during the fault; null if the server stalls.
    pub(super) slow: Option<f64>,
    /// End of the run. The load goes on until the requests before it are settled.
    pub(super) horizon_s: f64,
}

/// A policy, as measured and as simulated.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PolicyEntry {
    /// Its name.
    pub(super) name: String,
    /// The policy, in one line of the policy language.
    pub(super) policy: String,
    /// What happened to the real clients.
    pub(super) measured: Figures,
    /// What the simulation says, with the first seed.
    pub(super) simulated: Figures,
    /// The figures side by side.
    pub(super) comparison: Vec<Compared>,
    /// Whether all of them agree; null if the machine may have shaped the run.
    pub(super) agrees: Option<bool>,
    /// The machine during the run.
    pub(super) machine: Machine,
}

/// What became of the requests.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Figures {
    /// Whether the system survived the fault.
    #[cfg_attr(test, schemars(schema_with = "stagger_report::report::verdict_schema"))]
    pub(super) verdict: VerdictKind,
    /// Time from the end of the fault until it is up for the rest of the run; null if it is down at the end.
    pub(super) recovery_s: Option<f64>,
    /// Share of the requests from the start of the fault that were served.
    pub(super) success_ratio: f64,
    /// Share of the requests during the fault that were served.
    pub(super) success_ratio_during_fault: f64,
    /// Attempts per request, from the start of the fault.
    pub(super) attempts_per_request: f64,
    /// Largest number of attempts at the server.
    pub(super) longest_queue: u32,
    /// Attempts that the server refused.
    pub(super) refused: u64,
    /// Attempts that ran out of their time limit.
    pub(super) timed_out: u64,
    /// Requests, by their arrival.
    pub(super) requests: Vec<u32>,
    /// Attempts, by the time at which they were sent.
    pub(super) attempts: Vec<u32>,
    /// Requests that were served, by the time at which they were.
    pub(super) served: Vec<u32>,
}

/// The machine during a run. A value that the system does not provide is null.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Machine {
    /// 10th percentile of the one-way delay without other load.
    pub(super) one_way_min_s: f64,
    /// 90th percentile of the one-way delay without other load.
    pub(super) one_way_max_s: f64,
    /// Maximum delay of a timer of the clients.
    pub(super) max_timer_delay_s: f64,
    /// Maximum delay of a timer of the server.
    pub(super) max_server_timer_delay_s: f64,
    /// CPU utilization of the machine in its busiest second, as a ratio.
    pub(super) peak_cpu_ratio: Option<f64>,
    /// Processors that the clients kept busy in their busiest second.
    pub(super) peak_client_processors: Option<f64>,
    /// Processors that the server kept busy in its busiest second. It can use one.
    pub(super) peak_server_processors: Option<f64>,
    /// Attempts that failed for another reason than a refusal or a timeout.
    pub(super) broken: u64,
    /// Reasons why the machine instead of the policy may have shaped the run; empty if there are none.
    pub(super) warnings: Vec<String>,
}

/// A figure as measured and as simulated.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Compared {
    /// Its key among the figures.
    pub(super) figure: &'static str,
    /// As measured.
    pub(super) measured: f64,
    /// The mean of the simulations.
    pub(super) simulated: f64,
    /// Whether the measured value is within the range of the simulations, or beyond it by at most a tenth, or by so
    /// little that it is noise.
    pub(super) agrees: bool,
}

impl Compared {
    /// Returns whether the measured value is beyond the simulated ones by more than a half of them.
    pub(super) fn is_gross(&self) -> bool {
        !self.agrees && is_far(self.measured, [self.simulated; 2])
    }
}

impl Document {
    pub(super) const fn new(scenario: Scenario, policies: Vec<PolicyEntry>) -> Self {
        Self { schema: "stagger.drill-outage/1", scenario, policies }
    }
}

impl Scenario {
    pub(super) fn new(settings: &OutageSettings) -> Self {
        Self {
            rate: settings.rate,
            workers: settings.server.workers,
            service_s: settings.server.service.as_secs_f64(),
            backlog: settings.server.backlog,
            timeout_s: settings.timeout.as_secs_f64(),
            fault_start_s: settings.server.start.as_secs_f64(),
            fault_end_s: settings.server.end.as_secs_f64(),
            slow: settings.server.slow,
            horizon_s: settings.horizon.as_secs_f64(),
        }
    }

    /// Returns the attempts that the server can serve in a second.
    pub(super) fn capacity(&self) -> f64 {
        f64::from(self.workers) / self.service_s
    }
}

impl Figures {
    pub(super) fn new(figures: &SystemFigures) -> Self {
        let counts = |series: &TimeSeries| series.counts().to_vec();
        // There is one service and one edge, unless the run has not begun.
        let server = figures.services.first().cloned().unwrap_or_default();
        let edge = figures.edges.first().cloned().unwrap_or_default();
        Self {
            verdict: figures.state_at_horizon().into(),
            recovery_s: figures.recovery().map(|after| after.as_secs_f64()),
            success_ratio: figures.success_ratio(),
            success_ratio_during_fault: figures.success_ratio_during_fault(),
            attempts_per_request: figures.attempts_per_request(0),
            longest_queue: server.peak,
            refused: server.refused,
            timed_out: edge.timed_out,
            requests: counts(&figures.requests),
            attempts: counts(&edge.attempts),
            served: counts(&figures.goodput),
        }
    }
}

/// The figures of a run without any request.
impl Default for Figures {
    fn default() -> Self {
        Self::new(&SystemFigures::default())
    }
}

/// Compares the figures that a policy is judged by.
pub(super) fn compare(measured: &Figures, simulated: &[Figures]) -> Vec<Compared> {
    // Each with the difference that is noise: of a share, of attempts, of places in the queue.
    let figures: [(&'static str, fn(&Figures) -> f64, f64); 4] = [
        ("success_ratio", |figures| figures.success_ratio, 0.02),
        ("success_ratio_during_fault", |figures| figures.success_ratio_during_fault, 0.02),
        ("attempts_per_request", |figures| figures.attempts_per_request, 0.02),
        ("longest_queue", |figures| f64::from(figures.longest_queue), 2.0),
    ];
    let compared = figures.into_iter().map(|(figure, of, noise)| {
        let values = || simulated.iter().map(of);
        let measured = of(measured);
        let agrees = is_within(measured, values(), noise);
        let mean = values().sum::<f64>() / simulated.len().max(1) as f64;
        Compared { figure, measured, simulated: mean, agrees }
    });
    compared.collect()
}

#[cfg(test)]
mod tests {
    use stagger_kit::assert_published_schema;

    use super::*;

    #[test]
    fn the_published_schema_matches_the_output() {
        assert_published_schema::<Document>(
            env!("CARGO_MANIFEST_DIR"),
            "src/outage/stagger.drill-outage-1.schema.json",
        );
    }

    fn figures(attempts: f64, queue: u32) -> Figures {
        Figures { attempts_per_request: attempts, longest_queue: queue, ..Figures::default() }
    }

    #[test]
    fn figures_agree_within_a_tenth_beyond_the_range_of_the_simulations() {
        let agree = |measured: Figures, simulated: &[Figures]| {
            compare(&measured, simulated).iter().map(|one| one.agrees).collect::<Vec<_>>()
        };
        let simulated = [figures(1.0, 100), figures(2.0, 100)];
        assert_eq!(agree(figures(2.19, 91), &simulated), [true; 4]);
        assert_eq!(agree(figures(0.91, 109), &simulated), [true; 4]);
        assert_eq!(agree(figures(2.21, 91), &simulated), [true, true, false, true]);
        assert_eq!(agree(figures(0.89, 89), &simulated), [true, true, false, false]);
        // Two of a queue of four are noise, although they are more than a tenth of it.
        assert_eq!(agree(figures(1.0, 6), &[figures(1.0, 4)]), [true; 4]);
        assert_eq!(agree(figures(1.0, 7), &[figures(1.0, 4)]), [true, true, true, false]);
    }
}
