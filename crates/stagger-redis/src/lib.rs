//! Guards for a fleet.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;
mod fleet;
mod lease;
#[cfg(test)]
mod model;
mod observe;
mod store;
mod target;
mod task;
mod tokens;

pub use error::{SettingsError, SettingsProblem};
pub use fleet::{Fleet, FleetBuilder, FleetEvent, FleetSnapshot};
#[cfg(feature = "metrics")]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use observe::describe_metrics;
pub use tokens::{SharedTokens, SharedTokensBuilder, SharedTokensSnapshot};
