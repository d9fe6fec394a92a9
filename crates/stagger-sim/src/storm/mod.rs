//! Results of simulations and of measured storms as a document with the schema `stagger.storm/1`.
//!
//! Durations are numbers of seconds with names that end in `_s`, counts are whole numbers, ratios lie between 0 and 1,
//! and a policy is its line in the policy language. A value that does not exist is `null`. Later versions of the schema
//! may add fields; existing fields keep their names and meanings. The schema is
//! `src/storm/stagger.storm-1.schema.json`.
//!
//! ```
//! use stagger_core::{Policy, Seed};
//! use stagger_sim::reconnect::ReconnectScenario;
//! use stagger_sim::storm::StormReport;
//!
//! let scenario = ReconnectScenario::builder(1_000).build()?;
//! let runs = [1, 2].map(Seed::new).map(|seed| (seed, scenario.run(&Policy::DEFAULT, seed)));
//! let runs = runs.iter().map(|(seed, figures)| (*seed, figures));
//! let storm = StormReport::new(&scenario).with_strategy("default", &Policy::DEFAULT, runs);
//!
//! let text = serde_json::to_string(&storm)?;
//! assert!(text.starts_with(r#"{"schema":"stagger.storm/1","scenario":{"kind":"reconnect","clients":1000,"#));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod document;
mod metric;
mod report;
mod spec;

pub use document::{
    Agreement, ComparedFigure, Measurements, RunReport, SchemaVersion, ServerCounts, StormReport, StrategyReport,
    SweptPart, SweptSetting,
};
pub use metric::{Better, Importance, Metric, MetricValue, Quantity};
pub use report::{FluidReport, OccReport, OutageReport, ReconnectReport, RunFigures, VerdictKind};
pub use spec::{
    CrashLoopSpec, FirstAttemptSpec, OccSpec, OutageKindSpec, OutageSpec, ReconnectSpec, RetryAfterSpec, ScenarioSpec,
    StoreSpec,
};
