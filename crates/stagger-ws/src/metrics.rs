//! The descriptions and the units of all metrics.

use stagger::observe::describe_table;

/// Bucket boundaries for the histogram `stagger_ws_downtime_seconds`, from 100 ms to an hour: a factor of about three.
///
/// The usual buckets of exporters are for response times and end at 10 s, which is the spread of the default policy:
/// every longer outage would look the same.
#[cfg(feature = "client")]
pub const DOWNTIME_BUCKETS: [f64; 10] = [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3600.0];

/// Gives the description and the unit of every metric of this crate to the recorder of the `metrics` crate: those of
/// the [client](crate#metrics-and-logs) and of the server, as far as their features are on. Call it once, after the
/// recorder was installed, along with [`stagger::observe::describe_metrics`].
///
/// ```
/// stagger::observe::describe_metrics();
/// stagger_ws::describe_metrics();
/// ```
pub fn describe_metrics() {
    #[cfg(feature = "client")]
    describe_table(include_str!("client/metrics.md"));
    #[cfg(feature = "server")]
    describe_table(include_str!("server/contract.md"));
}
