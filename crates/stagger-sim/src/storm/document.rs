//! The document: a scenario, strategies, their runs, and measurements of real clients.

use serde::{Deserialize, Serialize};
use stagger_core::{Policy, Seed};

use super::{RunFigures, ScenarioSpec};

/// A scenario, and its results with each of several strategies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "stagger.storm/1"))]
#[non_exhaustive]
pub struct StormReport {
    /// Always `stagger.storm/1`.
    pub schema: SchemaVersion,
    /// The scenario.
    pub scenario: ScenarioSpec,
    /// The strategies, in the given order.
    pub strategies: Vec<StrategyReport>,
}

/// The schema of a document, with its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum SchemaVersion {
    /// Version 1.
    #[default]
    #[serde(rename = "stagger.storm/1")]
    V1,
}

/// A strategy and its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct StrategyReport {
    /// The name of the strategy.
    pub name: String,
    /// The policy, as one line of the policy language.
    pub policy: String,
    /// Description of the guards; absent for scenarios without guards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guards: Option<String>,
    /// The scenario of this strategy; absent if it is that of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<ScenarioSpec>,
    /// The settings that sweeps gave to this strategy, in the order of the sweeps; absent without a sweep. The name
    /// ends with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub swept: Vec<SweptSetting>,
    /// The runs, one per seed.
    pub runs: Vec<RunReport>,
}

/// A setting that a sweep varies, with one of its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SweptSetting {
    /// The name of the setting.
    pub setting: String,
    /// The value, as in the policy language or on the command line.
    pub value: String,
    /// What the setting belongs to.
    pub of: SweptPart,
}

/// What a swept setting belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SweptPart {
    /// The policy.
    Policy,
    /// The scenario.
    Scenario,
}

impl SweptSetting {
    /// Creates a swept setting.
    #[must_use]
    pub fn new(setting: impl Into<String>, value: impl Into<String>, of: SweptPart) -> Self {
        Self { setting: setting.into(), value: value.into(), of }
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct RunReport {
    /// The seed. With scenario, policy and seed, the run can be reproduced.
    pub seed: u64,
    /// The figures of the run.
    #[serde(flatten)]
    pub figures: RunFigures,
    /// Further measurements of a run with real clients; absent for simulations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measurements>,
}

impl StormReport {
    /// Creates a report without strategies.
    pub fn new(scenario: impl Into<ScenarioSpec>) -> Self {
        Self { schema: SchemaVersion::V1, scenario: scenario.into(), strategies: Vec::new() }
    }

    /// Adds a strategy, with the figures for each seed.
    #[must_use]
    pub fn with_strategy<F: Into<RunFigures>>(
        mut self,
        name: impl Into<String>,
        policy: &Policy,
        runs: impl IntoIterator<Item = (Seed, F)>,
    ) -> Self {
        let runs = runs
            .into_iter()
            .map(|(seed, figures)| RunReport { seed: seed.get(), figures: figures.into(), measured: None })
            .collect();
        self.strategies.push(StrategyReport {
            name: name.into(),
            policy: policy.to_string(),
            guards: None,
            scenario: None,
            swept: Vec::new(),
            runs,
        });
        self
    }

    /// Sets the measurements of the last run of the last strategy.
    #[must_use]
    pub fn with_measurements(mut self, measured: Measurements) -> Self {
        if let Some(last) = self.strategies.last_mut() {
            if let Some(run) = last.runs.last_mut() {
                run.measured = Some(measured);
            }
        }
        self
    }

    /// Sets the scenario of the last strategy and the settings that sweeps gave to it.
    #[must_use]
    pub fn with_swept(mut self, scenario: ScenarioSpec, swept: impl IntoIterator<Item = SweptSetting>) -> Self {
        if let Some(last) = self.strategies.last_mut() {
            last.scenario = if scenario == self.scenario { None } else { Some(scenario) };
            last.swept = swept.into_iter().collect();
        }
        self
    }

    /// Returns the scenario of a strategy: its own, or that of the document.
    #[must_use]
    pub fn scenario_of<'a>(&'a self, strategy: &'a StrategyReport) -> &'a ScenarioSpec {
        strategy.scenario.as_ref().unwrap_or(&self.scenario)
    }

    /// Sets the description of the guards of the last strategy.
    #[must_use]
    pub fn with_guards(mut self, guards: impl Into<String>) -> Self {
        if let Some(last) = self.strategies.last_mut() {
            last.guards = Some(guards.into());
        }
        self
    }
}

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
    /// Its name among the figures of the run, or `burst_100ms`: the largest number of attempts that arrived within any
    /// 100 ms.
    pub figure: String,
    /// As measured; `null` if it does not exist.
    pub measured: Option<f64>,
    /// The mean of the simulations; `null` if it does not exist in one of them.
    pub simulated: Option<f64>,
    /// The lowest value of the simulations.
    pub simulated_min: Option<f64>,
    /// The highest value of the simulations.
    pub simulated_max: Option<f64>,
    /// Whether the measured value is within the range of the simulations, or beyond it by at most a tenth, or by so
    /// little that it is noise.
    pub agrees: bool,
}

impl ComparedFigure {
    /// Returns by what share of the simulated mean the measured value is above it, or, if negative, below it; `None` if
    /// one of them does not exist or the mean is 0.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        let (measured, simulated) = (self.measured?, self.simulated?);
        if simulated > 0.0 { Some(measured / simulated - 1.0) } else { None }
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

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::{env, fs};

    use serde_json::{Value, from_value, json, to_value};

    use crate::outage::ProcessGuards;
    use crate::storm::{FluidReport, ReconnectReport, ServerCounts};
    use crate::{fluid, occ, outage, reconnect};

    use super::*;

    const SEED: Seed = Seed::new(7);

    fn reconnects() -> StormReport {
        let scenario = reconnect::ReconnectScenario::builder(500).rate(50.0).backlog(5);
        let scenario = scenario.retry_after(reconnect::RetryAfter::Fixed(Duration::from_secs(2)));
        let scenario = scenario.down_for(Duration::from_millis(1_500)).build().unwrap();
        let runs = [(SEED, &scenario.run(&Policy::DEFAULT, SEED))];
        StormReport::new(&scenario).with_strategy("plain", &Policy::DEFAULT, runs)
    }

    fn outages() -> StormReport {
        let scenario = outage::OutageScenario::builder(50.0).capacity(60.0).queue(300).build().unwrap();
        let runs = [(SEED, &scenario.run(&Policy::DEFAULT, |_| ProcessGuards::none(), SEED))];
        StormReport::new(&scenario).with_strategy("unguarded", &Policy::DEFAULT, runs).with_guards("none")
    }

    fn contentions() -> StormReport {
        let scenario = occ::OccScenario::builder(20).build().unwrap();
        let runs = [(SEED, &scenario.run(&Policy::DEFAULT, SEED))];
        StormReport::new(&scenario).with_strategy("plain", &Policy::DEFAULT, runs)
    }

    fn fields() -> StormReport {
        let scenario = reconnect::ReconnectScenario::builder(500).rate(50.0).backlog(5).build().unwrap();
        let figures = FluidReport::from_figures(500, &fluid::run(&scenario, &Policy::DEFAULT).unwrap());
        StormReport::new(ScenarioSpec::fluid(&scenario)).with_strategy("plain", &Policy::DEFAULT, [(SEED, figures)])
    }

    #[test]
    fn measurements_are_beside_the_figures_and_round_trip() {
        let served = ServerCounts { arrived: 7, ..ServerCounts::default() };
        let measured =
            Measurements { server: Some(served), warnings: vec!["busy".to_owned()], ..Measurements::default() };
        let storm = reconnects().with_measurements(measured);
        let document = to_value(&storm).unwrap();
        let run = &document["strategies"][0]["runs"][0];
        assert_eq!((&run["clients"], &run["measured"]["server"]["arrived"]), (&json!(500), &json!(7)));
        assert_eq!((&run["measured"]["warnings"], &run["measured"]["down_s"]), (&json!(["busy"]), &Value::Null));
        assert_eq!(from_value::<StormReport>(document).unwrap(), storm);
        assert_eq!(to_value(reconnects()).unwrap()["strategies"][0]["runs"][0].get("measured"), None, "simulated");
    }

    #[test]
    fn documents_round_trip() {
        for storm in [reconnects(), outages(), contentions(), fields()] {
            let document = to_value(&storm).unwrap();
            assert_eq!(from_value::<StormReport>(document.clone()).unwrap(), storm, "{document:#}");
        }
    }

    #[test]
    fn durations_are_seconds_and_missing_values_are_null() {
        let document = to_value(reconnects()).unwrap();
        let scenario = &document["scenario"];
        assert_eq!((&scenario["kind"], &scenario["retry_after"]), (&json!("reconnect"), &json!("fixed")));
        let names = ["retry_after_s", "horizon_s", "down_for_s", "one_way_min_s", "one_way_max_s"];
        assert_eq!(json!(names.map(|name| &scenario[name])), json!([2.0, 86_400.0, 1.5, 0.01, 0.04]));
        let strategy = &document["strategies"][0];
        assert_eq!(strategy["policy"].as_str().unwrap().parse(), Ok(Policy::DEFAULT));
        let run = &strategy["runs"][0];
        assert_eq!((&run["seed"], &run["clients"]), (&json!(7), &json!(500)));
        // With four attempts, some clients give up.
        assert_eq!((&run["t100_s"], &run["efficiency_time"]), (&Value::Null, &Value::Null));
        let counts: Vec<u64> = from_value(run["arrivals"].clone()).unwrap();
        assert_eq!(json!(counts.iter().sum::<u64>()), run["attempts"]);
        assert_eq!(json!(counts[10..].iter().max()), run["peak_100ms_after_1s"]);
        assert_ne!(run["peak_100ms"], run["peak_100ms_after_1s"], "the first wave is the highest");
    }

    #[test]
    fn the_95th_percentile_is_that_of_the_list() {
        let recovered_percentiles = (1..=100).map(Duration::from_secs).collect();
        let figures = reconnect::ReconnectFigures { recovered_percentiles, ..Default::default() };
        assert_eq!(to_value(ReconnectReport::from_figures(&figures)).unwrap()["recovered_p95_s"], json!(95.0));
    }

    #[test]
    fn shares_are_scaled_to_numbers_of_clients() {
        let arrivals = [&[0.25, 0.125][..], &[0.03125; 10]].concat();
        let shares =
            fluid::FluidFigures { arrivals, connected: 0.5, peak_backlog: 0.25, ..fluid::FluidFigures::default() };
        let document = to_value(FluidReport::from_figures(1_000, &shares)).unwrap();
        let wanted = json!({
            "peak_100ms": 250.0,
            "peak_1s": 625.0,
            "peak_backlog": 250.0,
            "connected_ratio": 0.5,
            "t50_s": null,
        });
        for (name, want) in wanted.as_object().unwrap() {
            assert_eq!(&document[name], want, "{name}");
        }
    }

    #[test]
    fn guards_are_written_only_for_scenarios_with_guards() {
        let guards = |storm: StormReport| to_value(storm).unwrap()["strategies"][0].get("guards").cloned();
        assert_eq!([guards(outages()), guards(contentions())], [Some(json!("none")), None]);
    }

    #[test]
    fn a_swept_strategy_has_its_own_scenario_and_its_settings() {
        let [base, other] = [50.0, 60.0].map(|rate| outage::OutageScenario::builder(rate).build().unwrap());
        let swept = |value| [SweptSetting::new("rate", value, SweptPart::Scenario)];
        let none = || Vec::<(Seed, RunFigures)>::new();
        let storm = StormReport::new(&base)
            .with_strategy("plain, rate=50", &Policy::DEFAULT, none())
            .with_swept((&base).into(), swept("50"))
            .with_strategy("plain, rate=60", &Policy::DEFAULT, none())
            .with_swept((&other).into(), swept("60"));
        let document = to_value(&storm).unwrap();
        let [first, second] = [0, 1].map(|at| &document["strategies"][at]);
        assert_eq!((first.get("scenario"), &second["scenario"]["rate"]), (None, &json!(60.0)));
        assert_eq!(second["swept"], json!([{"setting": "rate", "value": "60", "of": "scenario"}]));
        assert_eq!(storm.scenario_of(&storm.strategies[0]), &ScenarioSpec::from(&base));
        assert_eq!(storm.scenario_of(&storm.strategies[1]), &ScenarioSpec::from(&other));
        assert_eq!(from_value::<StormReport>(document).unwrap(), storm);
        assert!(to_value(contentions()).unwrap()["strategies"][0].get("swept").is_none());
    }

    #[test]
    fn another_schema_is_rejected() {
        let mut document = to_value(contentions()).unwrap();
        document["schema"] = json!("stagger.storm/2");
        assert!(from_value::<StormReport>(document).unwrap_err().to_string().contains("stagger.storm/1"));
    }

    #[test]
    fn fields_of_a_later_version_are_ignored() {
        let mut document = to_value(contentions()).unwrap();
        document["strategies"][0]["runs"][0]["weather"] = json!("fine");
        assert_eq!(from_value::<StormReport>(document).unwrap(), contentions());
    }

    /// Compares the published schema with the code. After a change: `STAGGER_BLESS=1 cargo test -p stagger-sim
    /// --all-features schema`.
    #[test]
    fn the_published_schema_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/storm/stagger.storm-1.schema.json");
        let now = serde_json::to_string_pretty(&schemars::schema_for!(StormReport)).unwrap() + "\n";
        if env::var_os("STAGGER_BLESS").is_some() {
            fs::write(path, &now).unwrap();
        }
        assert_eq!(fs::read_to_string(path).unwrap(), now);
    }
}
