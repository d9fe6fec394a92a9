//! Shared test support: durations, a driver on a virtual clock, recording fakes, statistics, random policies.

mod call;
pub(crate) mod oracle;
mod policies;
mod recording;

pub(crate) use call::{Call, SECRET, Step, Trace, at, bits_of, ms, secs, take};
pub(crate) use oracle::{ks_distance, ks_limit, mean};
pub(crate) use policies::{JITTERS, any_delays, any_policy, any_settings, cases, length};
pub(crate) use recording::{CountingClock, GuardTrace, RecordingGuard, Start, go};
