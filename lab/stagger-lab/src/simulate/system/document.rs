//! The document of a system, which all reports are generated from.

use serde::Serialize;
use stagger_core::Seed;
use stagger_sim::TimeSeries;
use stagger_sim::outage::Verdict;
use stagger_sim::storm::VerdictKind;
use stagger_sim::system::{System, SystemFigures};

use super::find::{FrontierEntry, SearchEntry};

/// Output of `stagger simulate system --json`: schema `stagger.system/1`.
///
/// Durations are in seconds, ratios from 0 to 1. Later versions of the schema may add fields; existing fields keep their
/// names and meanings.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "stagger.system/1"))]
pub(crate) struct Document {
    /// Always `stagger.system/1`.
    schema: &'static str,
    /// The name of the file, or of the incident.
    pub(super) file: String,
    /// The system.
    pub(crate) system: SystemEntry,
    /// The runs, one per seed.
    pub(crate) runs: Vec<RunEntry>,
    /// The search of `--find`; absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) search: Option<SearchEntry>,
    /// The map of `--frontier`; absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) frontier: Option<FrontierEntry>,
}

/// A system.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SystemEntry {
    /// Requests per second.
    pub(super) rate: f64,
    /// End of the simulation. A run that is not decided then goes on, up to 16 times as long.
    pub(super) horizon_s: f64,
    /// Start of the first trigger.
    pub(crate) fault_start_s: f64,
    /// End of the last trigger.
    pub(crate) fault_end_s: f64,
    /// The triggers, in words.
    pub(super) triggers: Vec<String>,
    /// The services.
    pub(super) services: Vec<ServiceEntry>,
    /// The edges.
    pub(super) edges: Vec<EdgeEntry>,
}

/// A service.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ServiceEntry {
    /// Its name.
    pub(super) name: String,
    /// Attempts that its workers serve in a second when all is well, held for calls as they are.
    pub(super) capacity: f64,
    /// Attempts per second when all is well.
    pub(super) load: f64,
    /// Attempts per second when no call succeeds and every attempt is made; null without a limit of attempts.
    worst_load: Option<f64>,
    /// Number of edges from the users, on the longest way.
    pub(super) depth: usize,
}

/// An edge.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct EdgeEntry {
    /// The name of the service that calls, or `users`.
    pub(super) from: String,
    /// The name of the service that is called.
    pub(super) to: String,
    /// The policy, in one line of the policy language.
    pub(super) policy: String,
    /// Time limit of an attempt.
    timeout_s: f64,
    /// Calls per request when all is well.
    calls_per_request: f64,
    /// Attempts per request when no call succeeds and every attempt is made; null without a limit of attempts.
    pub(super) worst_attempts_per_request: Option<f64>,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RunEntry {
    /// The seed.
    pub(super) seed: u64,
    /// Whether the system survived.
    #[cfg_attr(test, schemars(schema_with = "stagger_report::report::verdict_schema"))]
    pub(super) verdict: VerdictKind,
    /// Whether it is down at the end of the run, and stays down; null if that is not decided.
    pub(super) metastable: Option<bool>,
    /// End of the run: later than the horizon if that was too short to decide.
    pub(super) horizon_s: f64,
    /// Whether it was down when the first trigger came.
    pub(super) down_before_fault: bool,
    /// When it fell first, from the start of the simulation; null if it never fell.
    pub(super) fell_at_s: Option<f64>,
    /// Time from the end of the last trigger until it is up for the rest of the run; null if it is down at its end, or
    /// that is not decided.
    pub(super) recovery_s: Option<f64>,
    /// Share of the requests from the start of the fault that were served.
    pub(super) success_ratio: f64,
    /// Share of all requests that were served in the end, also after the end of the run.
    pub(super) served_in_the_end_ratio: f64,
    /// Median of how long requests took that were served, from the start of the fault; null if none was.
    pub(super) latency_p50_s: Option<f64>,
    /// The time within which 99% of those requests were served.
    pub(super) latency_p99_s: Option<f64>,
    /// Share of the requests during the fault that were served.
    pub(super) success_ratio_during_fault: f64,
    /// Share of the requests of the last ten windows that were served.
    pub(super) final_success_ratio: f64,
    /// Largest number of attempts on an edge per request.
    pub(super) amplification: f64,
    /// Width of the windows by which the system is judged.
    pub(super) window_s: f64,
    /// The services.
    pub(super) services: Vec<ServiceRun>,
    /// The edges.
    pub(super) edges: Vec<EdgeRun>,
    /// Requests, per second of their arrival.
    pub(crate) requests: Vec<u64>,
    /// Requests that were served, per second in which they were.
    pub(crate) goodput: Vec<u64>,
}

/// A service in a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct ServiceRun {
    /// Attempts that were worked on per second.
    pub(super) throughput: f64,
    /// Attempts per second that were answered in time and with success.
    pub(super) goodput: f64,
    /// Share of the work whose answer nobody waited for, or that failed later on.
    pub(super) wasted_ratio: f64,
    /// Attempts that were refused.
    pub(super) refused: u64,
    /// Attempts that were dropped because their callers had given up.
    pub(super) dropped: u64,
    /// Largest number of attempts at the service.
    pub(super) peak: u32,
    /// Attempts at the service, at every whole second.
    pub(super) occupancy: Vec<u32>,
}

/// An edge in a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct EdgeRun {
    /// Attempts per request of the users, from the start of the fault.
    pub(super) attempts_per_request: f64,
    /// Attempts per request of the users, of the requests during the fault.
    pub(super) attempts_per_request_during_fault: f64,
    /// Attempts that ran out of their time limit.
    pub(super) timed_out: u64,
    /// Calls that a cache served.
    pub(super) cached: u64,
    /// Attempts per second.
    pub(super) attempts: Vec<u64>,
}

/// The name of the users at the start of an edge.
const USERS: &str = "users";

impl Document {
    pub(super) fn new<'a>(
        file: String,
        system: &System,
        runs: impl IntoIterator<Item = (Seed, &'a SystemFigures)>,
    ) -> Self {
        let runs = runs.into_iter().map(|(seed, figures)| RunEntry::new(seed, figures)).collect();
        let schema = "stagger.system/1";
        Self { schema, file, system: SystemEntry::new(system), runs, search: None, frontier: None }
    }
}

impl Document {
    /// Returns the document of a run without any request, for the names of its figures.
    pub(super) fn without_runs(system: &System) -> Self {
        let mut figures = SystemFigures::default();
        figures.services.resize_with(system.services().len(), Default::default);
        figures.edges.resize_with(system.edges().len(), Default::default);
        Self::new(String::new(), system, [(Seed::new(0), &figures)])
    }
}

impl SystemEntry {
    fn new(system: &System) -> Self {
        let (layout, (start, end)) = (system.layout(), system.fault());
        let finite = |number: f64| number.is_finite().then_some(number);
        let services = layout.services.iter().map(|service| ServiceEntry {
            name: service.name.clone(),
            capacity: service.capacity,
            load: service.load,
            worst_load: finite(service.worst_load),
            depth: service.depth,
        });
        let edges = layout.edges.iter().map(|edge| EdgeEntry {
            from: edge.from.map_or(USERS, |from| &layout.services[from].name).to_owned(),
            to: layout.services[edge.to].name.clone(),
            policy: edge.policy.to_string(),
            timeout_s: edge.timeout.as_secs_f64(),
            calls_per_request: edge.calls_per_request,
            worst_attempts_per_request: finite(edge.worst_attempts_per_request),
        });
        Self {
            rate: system.rate(),
            horizon_s: system.horizon().as_secs_f64(),
            fault_start_s: start.as_secs_f64(),
            fault_end_s: end.as_secs_f64(),
            triggers: system.triggers().iter().map(ToString::to_string).collect(),
            services: services.collect(),
            edges: edges.collect(),
        }
    }
}

impl RunEntry {
    fn new(seed: Seed, figures: &SystemFigures) -> Self {
        let seconds = figures.horizon.as_secs_f64();
        let services = figures.services.iter().map(|of| ServiceRun {
            throughput: of.completed as f64 / seconds,
            goodput: of.useful as f64 / seconds,
            wasted_ratio: of.wasted_ratio(),
            refused: of.refused,
            dropped: of.dropped,
            peak: of.peak,
            occupancy: of.occupancy.clone(),
        });
        let edges = figures.edges.iter().enumerate().map(|(nth, of)| EdgeRun {
            attempts_per_request: figures.attempts_per_request(nth),
            attempts_per_request_during_fault: figures.attempts_per_request_during_fault(nth),
            timed_out: of.timed_out,
            cached: of.cached,
            attempts: by_second(&of.attempts, seconds),
        });
        Self {
            seed: seed.get(),
            verdict: figures.verdict().into(),
            metastable: (figures.verdict() != Verdict::NotDecided).then(|| figures.is_metastable()),
            horizon_s: seconds,
            down_before_fault: figures.was_down_before_fault(),
            fell_at_s: figures.fell_at().map(|at| at.as_secs_f64()),
            recovery_s: if figures.verdict().is_up() {
                figures.recovery().map(|after| after.as_secs_f64())
            } else {
                None
            },
            success_ratio: figures.success_ratio(),
            served_in_the_end_ratio: figures.served_in_the_end_ratio(),
            latency_p50_s: figures.latency(0.5).map(|time| time.as_secs_f64()),
            latency_p99_s: figures.latency(0.99).map(|time| time.as_secs_f64()),
            success_ratio_during_fault: figures.success_ratio_during_fault(),
            final_success_ratio: figures.final_success_ratio(),
            amplification: figures.amplification(),
            window_s: figures.window().as_secs_f64(),
            services: services.collect(),
            edges: edges.collect(),
            requests: by_second(&figures.requests, seconds),
            goodput: by_second(&figures.goodput, seconds),
        }
    }
}

/// Returns the counts of whole seconds up to the horizon.
fn by_second(series: &TimeSeries, horizon: f64) -> Vec<u64> {
    let counts = series.counts().chunks(10).map(|bins| bins.iter().map(|&count| u64::from(count)).sum());
    counts.chain(core::iter::repeat(0)).take(horizon.ceil() as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stagger_kit::assert_published_schema;

    #[test]
    fn the_published_schema_matches_the_output() {
        assert_published_schema::<Document>(
            env!("CARGO_MANIFEST_DIR"),
            "src/simulate/system/stagger.system-1.schema.json",
        );
    }
}
