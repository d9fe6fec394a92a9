use metrics::{counter, histogram};

use crate::{Action, Event};

/// A listener that counts, with the `metrics` crate. These names are part of the interface:
///
/// | metric | kind | labels | counts |
/// |---|---|---|---|
/// | `stagger_attempts_total` | counter | `target` | attempts |
/// | `stagger_retries_total` | counter | `target`, `source` (`schedule`, `hint`, `transparent`) | retries that were decided on |
/// | `stagger_retry_delay_seconds` | histogram | `target`, `source` | their delays |
/// | `stagger_calls_total` | counter | `target`, `kind` | calls that came to their end |
/// | `stagger_stops_total` | counter | `target`, `reason` | calls that were given up, by [`Stop::name`](crate::Stop::name) |
///
/// `kind` is one of `successful_without_retry`, `successful_with_retry`, `failed_without_retry`, `failed_with_retry`.
///
/// ```
/// let api = stagger::Retrier::new(stagger::Policy::DEFAULT).named("api").on_event(stagger::sinks::metrics());
/// # let _ = api;
/// ```
pub fn metrics() -> impl Fn(&Event<'_>) + Send + Sync + 'static {
    |event| {
        let target = event.target.to_owned();
        counter!("stagger_attempts_total", "target" => target.clone()).increment(1);
        let retried = event.attempt > 1;
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
            Action::Stop(stop) => {
                let kind = if retried { "failed_with_retry" } else { "failed_without_retry" };
                counter!("stagger_calls_total", "target" => target.clone(), "kind" => kind).increment(1);
                counter!("stagger_stops_total", "target" => target, "reason" => stop.name()).increment(1);
            }
        }
    }
}
