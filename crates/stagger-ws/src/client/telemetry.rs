//! Records metrics and traces. The host is the only part of a request that is recorded.

use core::pin::Pin;
use core::time::Duration;

use http::Uri;
use stagger::StopReason;

use super::failure::closed::Closed;

/// A gauge of open connections. Decrements on drop, also when the task is aborted.
#[derive(Debug)]
pub(super) struct ConnectedGauge {
    #[cfg(feature = "metrics")]
    gauge: metrics::Gauge,
}

impl ConnectedGauge {
    pub(super) fn new(target: &str) -> Self {
        #[cfg(feature = "metrics")]
        {
            let gauge = metrics::gauge!("stagger_ws_connected", "target" => target.to_owned());
            gauge.increment(1.0);
            Self { gauge }
        }
        #[cfg(not(feature = "metrics"))]
        {
            let _ = target;
            Self {}
        }
    }
}

impl Drop for ConnectedGauge {
    fn drop(&mut self) {
        #[cfg(feature = "metrics")]
        self.gauge.decrement(1.0);
    }
}

/// Counts a completed attempt.
pub(super) fn record_attempt(target: &str, result: &'static str) {
    #[cfg(feature = "metrics")]
    metrics::counter!("stagger_ws_attempts_total", "target" => target.to_owned(), "result" => result).increment(1);
    #[cfg(not(feature = "metrics"))]
    let _ = (target, result);
}

/// Records the time without a connection.
#[cfg(feature = "metrics")]
pub(super) fn record_downtime(target: &str, downtime: Duration) {
    metrics::histogram!("stagger_ws_downtime_seconds", "target" => target.to_owned()).record(downtime);
}

/// Records the host in the span of the attempt.
pub(super) fn record_host(uri: &Uri) {
    #[cfg(feature = "tracing")]
    tracing::Span::current().record("url.host", uri.host().unwrap_or_default());
    #[cfg(not(feature = "tracing"))]
    let _ = uri;
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
        let span = tracing::debug_span!(target: "stagger", "stagger.connect", attempt = number, url.host = tracing::field::Empty, delay);
        Box::pin(connect.instrument(span))
    }
    #[cfg(not(feature = "tracing"))]
    {
        let _ = (number, delay);
        Box::pin(connect)
    }
}

/// Logs a failed attempt or a lost connection. `stop` is the reason for giving up, if there are no further attempts.
pub(super) fn log_closed(target: &str, closed: &Closed, stop: Option<StopReason>) {
    #[cfg(feature = "tracing")]
    {
        use std::sync::OnceLock;

        use stagger::observe::{LogLimit, Verbosity};
        use stagger::time::Tokio;

        // Shared by all clients, since an outage affects all of them.
        static LIMIT: OnceLock<LogLimit<Tokio>> = OnceLock::new();
        let silenced = match LIMIT.get_or_init(|| LogLimit::with_clock(Tokio)).admit(target) {
            Verbosity::Full { since: silenced } | Verbosity::Summary { silenced } => silenced,
            _ => return,
        };
        let Closed { cause, retry_in, attempt } = closed;
        match (stop, retry_in) {
            (Some(stop), _) => {
                let stop = stop.name();
                tracing::warn!(target: "stagger", target_name = target, attempt, %cause, silenced, stop, "giving up");
            }
            (None, Some(wait)) => {
                let delay_ms = wait.as_secs_f64() * 1e3;
                tracing::debug!(target: "stagger", target_name = target, attempt, %cause, silenced, delay_ms, "reconnecting");
            }
            (None, None) => {
                tracing::debug!(target: "stagger", target_name = target, attempt, %cause, silenced, "ended");
            }
        }
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (target, closed, stop);
}

/// The metrics of an outbox.
pub(super) struct OutboxMetrics {
    #[cfg(feature = "metrics")]
    len: metrics::Gauge,
    #[cfg(feature = "metrics")]
    dropped: metrics::Counter,
}

#[cfg(feature = "metrics")]
impl OutboxMetrics {
    pub(super) fn new(target: &str) -> Self {
        Self {
            len: metrics::gauge!("stagger_ws_outbox_len", "target" => target.to_owned()),
            dropped: metrics::counter!("stagger_ws_outbox_dropped_total", "target" => target.to_owned()),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "an outbox of 2^52 messages fits nowhere")]
    pub(super) fn len(&self, messages: usize) {
        self.len.set(messages as f64);
    }

    pub(super) fn dropped(&self) {
        self.dropped.increment(1);
    }
}

#[cfg(not(feature = "metrics"))]
impl OutboxMetrics {
    pub(super) const fn new(_: &str) -> Self {
        Self {}
    }

    pub(super) const fn len(&self, _: usize) {}

    pub(super) const fn dropped(&self) {}
}

impl core::fmt::Debug for OutboxMetrics {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("OutboxMetrics")
    }
}
