//! What the tests share: lengths of time, a driver on a virtual clock, fakes that count, statistics, random policies.

mod call;
mod length;
pub(crate) mod oracle;
mod policies;
mod purse;
mod reads;
mod settings;
mod stats;
mod watch;

pub(crate) use call::{Call, Trace};
pub(crate) use length::{at, bits_of, ms, secs};
pub(crate) use policies::{JITTERS, any_delays, any_policy, cases, length};
pub(crate) use purse::Purse;
pub(crate) use reads::Reads;
pub(crate) use settings::any_settings;
pub(crate) use stats::{ks_distance, ks_limit, mean};
pub(crate) use watch::Watch;
