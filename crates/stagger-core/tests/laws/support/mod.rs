//! Shared test support: durations, a driver on a virtual clock, recording fakes, statistics, random policies.

mod call;
mod counting_clock;
pub(crate) mod held_calls;
mod length;
pub(crate) mod oracle;
mod policies;
mod recording_breaker;
mod recording_budget;
mod settings;
mod stats;

pub(crate) use call::{Call, Trace};
pub(crate) use counting_clock::CountingClock;
pub(crate) use length::{SECRET, at, bits_of, ms, secs};
pub(crate) use policies::{JITTERS, any_delays, any_policy, cases, length};
pub(crate) use recording_breaker::RecordingBreaker;
pub(crate) use recording_budget::RecordingBudget;
pub(crate) use settings::any_settings;
pub(crate) use stats::{ks_distance, ks_limit, mean};
