//! What simulations came to, and storms that were really made, as a document that others read: schema `stagger.storm/1`.
//!
//! Lengths of time are numbers of seconds and end in `_s`, counts are whole numbers, shares lie between 0 and 1, and a policy
//! is its line in the policy language. What never happened is `null`. Later versions of the schema may add fields; what is
//! here keeps its name and its meaning. The schema itself is `src/storm/stagger.storm-1.schema.json`.
//!
//! ```
//! use stagger_core::{Policy, Seed};
//! use stagger_sim::reconnect::ReconnectScenario;
//! use stagger_sim::storm::StormReport;
//!
//! let scenario = Scenario::builder(1_000).build()?;
//! let runs = [1, 2].map(Seed::new).map(|seed| (seed, scenario.run(&Policy::DEFAULT, seed)));
//! let storm = StormReport::new(&scenario).with_strategy("default", &Policy::DEFAULT, runs.iter().map(|(seed, run)| (*seed, run)));
//!
//! let text = serde_json::to_string(&storm)?;
//! assert!(text.starts_with(r#"{"schema":"stagger.storm/1","scenario":{"kind":"reconnect","clients":1000,"#));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod document;
mod measurements;
mod report;
mod spec;

pub use document::{RunReport, SchemaVersion, StormReport, StrategyReport};
pub use measurements::{Measurements, ServerCounts};
pub use report::{FluidReport, OccReport, OutageReport, ReconnectReport, RunFigures};
pub use spec::{FirstAttemptSpec, OccSpec, OutageKindSpec, OutageSpec, ReconnectSpec, RetryAfterSpec, ScenarioSpec};
