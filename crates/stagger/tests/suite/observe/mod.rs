//! Metrics and logs: the contract, and when they are made.
#![expect(clippy::float_cmp, reason = "metrics are floating, and what they count here is whole or a half: exact")]

mod contract;
mod gauges;
mod logs;
mod reports;
mod support;
