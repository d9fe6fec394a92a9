use metrics::{counter, histogram};

use crate::retrier::event::{Action, Event};

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
        // No attempt means that the breaker rejected the first one.
        let attempts = u64::from(event.attempt > 0);
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
            Action::Stop(stop) => {
                let kind = if retried { "failed_with_retry" } else { "failed_without_retry" };
                counter!("stagger_calls_total", "target" => target.clone(), "kind" => kind).increment(1);
                counter!("stagger_stops_total", "target" => target, "reason" => stop.name()).increment(1);
            }
        }
    }
}
