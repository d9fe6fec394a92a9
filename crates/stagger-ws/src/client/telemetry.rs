//! Records metrics and traces. The host is the only part of a request that is recorded.

use core::pin::Pin;
use core::time::Duration;

use http::Uri;
use stagger::machine::Unreachable;
use stagger::{Retrier, StopReason};

use super::failure::Closed;

/// Returns the label `target` of a client with this retrier.
pub(super) fn target(retrier: &Retrier) -> &str {
    match retrier.name() {
        "" => "websocket",
        name => name,
    }
}

/// A gauge of one target. Does nothing without the feature `metrics`.
#[derive(Debug)]
pub(super) struct Gauge(#[cfg(feature = "metrics")] metrics::Gauge);

impl Gauge {
    pub(super) fn new(name: &'static str, target: &str) -> Self {
        let _ = (name, target);
        Self(
            #[cfg(feature = "metrics")]
            metrics::gauge!(name, "target" => target.to_owned()),
        )
    }

    pub(super) fn set(&self, value: usize) {
        let _ = value;
        #[cfg(feature = "metrics")]
        self.0.set(value as f64);
    }

    pub(super) fn increment(&self) {
        #[cfg(feature = "metrics")]
        self.0.increment(1.0);
    }

    pub(super) fn decrement(&self, by: usize) {
        let _ = by;
        #[cfg(feature = "metrics")]
        self.0.decrement(by as f64);
    }
}

/// A counter of one target. Does nothing without the feature `metrics`.
#[derive(Debug)]
pub(super) struct Counter(#[cfg(feature = "metrics")] metrics::Counter);

impl Counter {
    pub(super) fn new(name: &'static str, target: &str) -> Self {
        let _ = (name, target);
        Self(
            #[cfg(feature = "metrics")]
            metrics::counter!(name, "target" => target.to_owned()),
        )
    }

    pub(super) fn increment(&self) {
        #[cfg(feature = "metrics")]
        self.0.increment(1);
    }
}

/// Counts a client in a gauge until it is dropped, also when the task is aborted.
#[derive(Debug)]
pub(super) struct ClientGauge(Gauge);

impl ClientGauge {
    pub(super) fn new(name: &'static str, target: &str) -> Self {
        let gauge = Gauge::new(name, target);
        gauge.increment();
        Self(gauge)
    }
}

impl Drop for ClientGauge {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// Counts a completed attempt.
pub(super) fn record_attempt(target: &str, result: &'static str) {
    let _ = (target, result);
    #[cfg(feature = "metrics")]
    metrics::counter!("stagger_ws_attempts_total", "target" => target.to_owned(), "result" => result).increment(1);
}

/// Records the time without a connection.
pub(super) fn record_downtime(target: &str, downtime: Duration) {
    let _ = (target, downtime);
    #[cfg(feature = "metrics")]
    metrics::histogram!("stagger_ws_downtime_seconds", "target" => target.to_owned()).record(downtime);
}

/// Records the host in the span of the attempt.
pub(super) fn record_host(uri: &Uri) {
    let _ = uri;
    #[cfg(feature = "tracing")]
    tracing::Span::current().record("url.host", uri.host().unwrap_or_default());
}

/// Instruments an attempt with a span: its number, its host, and the wait before it.
pub(super) fn in_span<F>(connect: F, number: u32, delay: Duration) -> Pin<Box<dyn Future<Output = F::Output> + Send>>
where
    F: Future + Send + 'static,
{
    #[cfg(feature = "tracing")]
    {
        use tracing::Instrument;

        let delay = delay.as_secs_f64();
        let span = tracing::debug_span!(
            target: "stagger", "stagger.connect", attempt = number, url.host = tracing::field::Empty, delay
        );
        Box::pin(connect.instrument(span))
    }
    #[cfg(not(feature = "tracing"))]
    {
        let _ = (number, delay);
        Box::pin(connect)
    }
}

/// Logs a failed attempt or a lost connection. `stop` is the reason for giving up, if there are no further attempts;
/// `report` is set if it is due to be reported that the server cannot be reached.
pub(super) fn log_closed(target: &str, closed: &Closed, stop: Option<StopReason>, report: Option<Unreachable>) {
    #[cfg(feature = "tracing")]
    {
        use std::sync::OnceLock;

        use stagger::observe::{LogLimit, Verbosity};
        use stagger::time::Tokio;

        // Shared by all clients, since an outage affects all of them.
        static LOSSES: OnceLock<LogLimit<Tokio>> = OnceLock::new();
        static STOPS: OnceLock<LogLimit<Tokio>> = OnceLock::new();
        // Rare, and with a limit of its own: the client that then gives up is told as well.
        static REPORTS: OnceLock<LogLimit<Tokio>> = OnceLock::new();
        let (limit, is_enabled) = match (stop, report) {
            (Some(_), _) => (&STOPS, tracing::enabled!(target: "stagger", tracing::Level::WARN)),
            (None, Some(_)) => (&REPORTS, tracing::enabled!(target: "stagger", tracing::Level::WARN)),
            (None, None) => (&LOSSES, tracing::enabled!(target: "stagger", tracing::Level::DEBUG)),
        };
        if !is_enabled {
            return;
        }
        let (silenced, over) = match limit.get_or_init(|| LogLimit::with_clock(Tokio)).admit(target) {
            Verbosity::Full { since: silenced, over } | Verbosity::Summary { silenced, over } => (silenced, over),
            _ => return,
        };
        let silenced_ms = over.as_secs_f64() * 1e3;
        let Closed { cause, retry_in, attempt, .. } = closed;
        match (stop, retry_in, report) {
            (None, _, Some(unreachable)) => {
                let unreachable_ms = unreachable.lasted.as_secs_f64() * 1e3;
                let failed_attempts = unreachable.attempts;
                tracing::warn!(
                    target: "stagger", target_name = target, attempt, %cause, silenced, silenced_ms, unreachable_ms,
                    failed_attempts, "unreachable"
                );
            }
            (Some(stop), _, _) => {
                let stop = stop.name();
                tracing::warn!(
                    target: "stagger", target_name = target, attempt, %cause, silenced, silenced_ms, stop, "giving up"
                );
            }
            (None, Some(wait), None) => {
                let delay_ms = wait.as_secs_f64() * 1e3;
                tracing::debug!(
                    target: "stagger", target_name = target, attempt, %cause, silenced, silenced_ms, delay_ms,
                    "reconnecting"
                );
            }
            (None, None, None) => {
                tracing::debug!(
                    target: "stagger", target_name = target, attempt, %cause, silenced, silenced_ms, "ended"
                );
            }
        }
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (target, closed, stop, report);
}

#[cfg(test)]
mod tests {
    use stagger::Policy;

    use super::*;

    #[test]
    fn the_label_is_the_retrier_s_name_or_websocket() {
        let unnamed = Retrier::new(Policy::DEFAULT);
        assert_eq!([target(&unnamed), target(&unnamed.clone().named("feed"))], ["websocket", "feed"]);
    }
}
