//! Metrics and logs: ready listeners for `on_event`, and collectors for what guards are.
//!
//! | what | how it is told | when |
//! |---|---|---|
//! | calls and retries | [`metrics()`](fn@metrics), [`tracing()`](fn@tracing): listeners for [`Retrier::on_event`](crate::Retrier::on_event) | at each decision |
//! | budgets, breakers, controls, admission | [`Gauges`] | when the program asks for it |
//! | hedges, batches, queues | [`record_hedged`], [`record_batch`], [`record_queue`] | when their report is there |
//!
//! # Metrics
//!
//! These names, labels and label values are part of the interface, and so a contract: they are added to, and change with
//! a major version only. `target` is the name that the program gave; every other label has the values that are listed,
//! and no other. Counters that are collected from guards begin where the guard does, not the collector. With the feature
//! `metrics`.
//!
#![doc = include_str!("contract.md")]
//!
//! Rules for Prometheus and a board for Grafana are in `monitoring/` of the repository; the guide says what to do about
//! each.
//!
//! # Events
//!
//! With the feature `tracing`, under the tracing target `stagger`; every event has a field `target_name`. Beside those of
//! the listener [`tracing()`](fn@tracing):
//!
//! | message | level | fields | by |
//! |---|---|---|---|
//! | `breaker changed` | `WARN` if it is open, else `INFO` | `state`, `was`, `cause`, `transitions` since the last event | [`Gauges`] |
//! | `operator control changed` | `WARN`, `INFO` if it is back | `setting`, `was` | [`Gauges`] |
//! | `hedged` | `DEBUG` | `launched`, `refused`, `winner` | [`record_hedged`] |
//! | `items failed` | `WARN` | `worked`, `failed`, `dead` | [`record_batch`] |

#[cfg(all(any(feature = "metrics", feature = "tracing"), target_has_atomic = "64"))]
mod collect;
mod limit;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod tracing;

pub use crate::event::{Action, Event, EventError};
#[cfg(all(any(feature = "metrics", feature = "tracing"), target_has_atomic = "64"))]
pub use collect::{Gauges, record_batch, record_hedged, record_queue};
pub use limit::{LogLimit, Verbosity};
#[cfg(feature = "metrics")]
pub use metrics::metrics;
#[cfg(feature = "tracing")]
pub use tracing::tracing;
