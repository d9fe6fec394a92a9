//! Metrics and logs: listeners for `on_event`, and collectors for the state of guards.
//!
//! | what | reported by | when |
//! |---|---|---|
//! | calls and retries | the listeners [`metrics()`](fn@metrics) and [`tracing()`](fn@tracing) | at each decision |
//! | guards, by key as well, controls, admission | [`Gauges`] | when the program calls [`Gauges::record`] |
//! | hedges, batches | [`record_hedged`], [`record_batch`] | when the program has a report |
//! | queues | [`record_queue`] | when the program has a snapshot |
//!
//! # Metrics
//!
//! These names, labels and label values are part of the public interface: they may be extended, and change only with a
//! major version. `target` is the name that the program chose, and guards of your own choose theirs; every other label
//! has exactly the listed values.
//! Counters collected from guards start with the guard, not with the collector. Requires the feature `metrics`.
//!
#![doc = include_str!("contract.md")]
//!
//! [`describe_metrics`] gives these descriptions and units to the recorder, and [`RETRY_DELAY_BUCKETS`] is for its
//! histogram.
//!
//! The name in OpenTelemetry is the name without `_total` and `_seconds`, with `stagger.` in front: `stagger.attempts`,
//! `stagger.retry_delay`. The units are those of OpenTelemetry, so that its translation to Prometheus gives the names
//! of the table.
//!
//! Rules for Prometheus and a dashboard for Grafana are in `monitoring/` of the repository; the guide says how to
//! respond to each alert.
//!
//! # Events
//!
//! Requires the feature `tracing`. The tracing target is `stagger`, and every event has a field `target_name`. In
//! addition to the events of the listener [`tracing()`](fn@tracing):
//!
//! | message | level | fields | emitted by |
//! |---|---|---|---|
//! | `breaker changed` | `WARN` if it opened, else `INFO` | `state`, `was`, `cause`, `transitions` | [`Gauges`] |
//! | `operator control changed` | `WARN`; `INFO` if it was reset | `setting`, `was` | [`Gauges`] |
//! | `hedged` | `DEBUG` | `launched`, `rejected`, `winner` | [`record_hedged`] |
//! | `items failed` | `WARN` | `succeeded`, `failed`, `dead_lettered` | [`record_batch`] |
//!
//! `transitions` counts those since the last event.

#[cfg(all(any(feature = "metrics", feature = "tracing"), target_has_atomic = "64"))]
mod collect;
mod limit;
#[cfg(feature = "metrics")]
mod metrics;
pub(crate) mod redact;
#[cfg(feature = "tracing")]
mod tracing;

#[cfg(all(any(feature = "metrics", feature = "tracing"), target_has_atomic = "64"))]
pub use collect::*;
pub use limit::{LogLimit, Verbosity};
#[cfg(feature = "metrics")]
pub use metrics::{RETRY_DELAY_BUCKETS, describe_metrics, describe_table, metrics};
#[cfg(feature = "tracing")]
pub use tracing::{tracing, tracing_with_clock};

pub use crate::retrier::event::{Action, Event, EventError};
