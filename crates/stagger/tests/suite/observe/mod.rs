//! Metrics and log events: the documented contract, and when each is emitted.
#![expect(clippy::float_cmp, reason = "the metrics here are multiples of 0.5, which floats represent exactly")]

mod contract;
mod gauges;
mod logs;
mod reports;
mod support;
