//! Ready listeners for `on_event`.

mod limit;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod tracing;

pub use limit::{LogLimit, Verbosity};
#[cfg(feature = "metrics")]
pub use metrics::metrics;
#[cfg(feature = "tracing")]
pub use tracing::tracing;
