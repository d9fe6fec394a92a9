//! The listener that counts with the `metrics` crate, and the descriptions of all metrics.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, histogram};

use crate::retrier::event::{Action, Event};

/// The names of all metrics, with their kind, description and unit.
const CONTRACT: &str = include_str!("contract.md");

/// Bucket boundaries for the histogram `stagger_retry_delay_seconds`, from 10 ms to the longest hint that a policy
/// follows by default, 5 minutes: a factor of about three, so that a boundary is never far from a quantile, with few
/// time series.
///
/// Exporters without boundaries for it have buckets for response times, which end at 10 s, or compute quantiles that
/// cannot be added up over instances. For example, with `metrics-exporter-prometheus`:
/// `builder.set_buckets_for_metric(Matcher::Full("stagger_retry_delay_seconds".into()), &RETRY_DELAY_BUCKETS)`.
pub const RETRY_DELAY_BUCKETS: [f64; 10] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0];

/// Gives the description and the unit of every metric of the [contract](super#metrics) to the recorder of the `metrics`
/// crate. Call it once, after the recorder was installed.
///
/// ```
/// stagger::observe::describe_metrics();
/// ```
pub fn describe_metrics() {
    describe_table(CONTRACT);
}

/// Describes the metrics of a table in Markdown, with the columns of the [contract](super#metrics). For the
/// integrations of this library, which have tables of their own.
#[doc(hidden)]
pub fn describe_table(table: &'static str) {
    for row in table.lines().skip(2) {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let (Some(name), Some(kind), Some(_), Some(description), Some(unit)) =
            (cells.next(), cells.next(), cells.next(), cells.next(), cells.next())
        else {
            continue;
        };
        let name = name.trim_matches('`');
        let unit = if unit == "`s`" { Unit::Seconds } else { Unit::Count };
        match kind {
            "counter" => describe_counter!(name, unit, description),
            "gauge" => describe_gauge!(name, unit, description),
            _ => describe_histogram!(name, unit, description),
        }
    }
}

/// Returns a listener that counts attempts, retries and calls, with the `metrics` crate. The names are in the
/// [contract](super#metrics).
///
/// ```
/// let api = stagger::Retrier::new(stagger::Policy::DEFAULT).named("api").on_event(stagger::observe::metrics());
/// # let _ = api;
/// ```
pub fn metrics() -> impl Fn(&Event<'_>) + Send + Sync + 'static {
    |event| {
        let target = event.target.to_owned();
        // No attempt means that a guard rejected the first one. The attempt that waits is counted when it has ended.
        let is_counted = event.attempt > 0 && !matches!(event.action, Action::Held { .. } | Action::Resumed);
        let attempts = u64::from(is_counted);
        counter!("stagger_attempts_total", "target" => target.clone()).increment(attempts);
        let retried = event.attempt > 1;
        if event.unreachable.is_some() {
            counter!("stagger_unreachable_total", "target" => target.clone()).increment(1);
        }
        match event.action {
            Action::Retry { after, source } => {
                let source = source.name();
                counter!("stagger_retries_total", "target" => target.clone(), "source" => source).increment(1);
                histogram!("stagger_retry_delay_seconds", "target" => target, "source" => source).record(after);
            }
            Action::Done => {
                let kind = if retried { "successful_with_retry" } else { "successful_without_retry" };
                counter!("stagger_calls_total", "target" => target, "kind" => kind).increment(1);
            }
            Action::Held { .. } | Action::Resumed => {}
            Action::Stop(stop) => {
                let kind = if retried { "failed_with_retry" } else { "failed_without_retry" };
                counter!("stagger_calls_total", "target" => target.clone(), "kind" => kind).increment(1);
                counter!("stagger_stops_total", "target" => target, "reason" => stop.name()).increment(1);
            }
        }
    }
}
