//! The listener that emits `tracing` events.

use core::time::Duration;

use super::redact::hide_url_secrets;
use super::{LogLimit, Verbosity};
use crate::retrier::event::{Action, Event};
use crate::time::{Clock, SystemClock};

/// Returns a listener that emits `tracing` events, rate-limited per target and level by a [`LogLimit`]: the first call
/// that is given up is always logged, at `INFO` as well, and then at most one line per second, which says how many it
/// stands for. Events of a level that the subscriber filters out count for nothing.
///
/// Their tracing target is `stagger`. These names are part of the public interface:
///
/// | event | level | message | fields |
/// |---|---|---|---|
/// | another attempt follows | `DEBUG` | `retrying` | common, `delay_ms`, `source` |
/// | [unreachable](Event::unreachable) | `WARN` | `unreachable` | likewise, `unreachable_ms`, `failed_attempts` |
/// | no further attempt | `WARN` | `giving up` | common, `stop` |
/// | success after more than one attempt | `DEBUG` | `succeeded` | common |
///
/// Common fields: `target_name`, `attempt` (from 1), `max_attempts` (0: no limit), `elapsed_ms`, `budget_left`,
/// `error`, `silenced` (events of this target and kind not logged since the last line), `silenced_ms` (the time from
/// the last line to the latest of them). A success on the first attempt emits no event.
///
/// `error` is the [text of the error](Event::error_text): the messages of the error and its sources if its type is
/// known to be an error, as after [`Retrier::look_into`](crate::Retrier::look_into), and otherwise its `Debug`
/// output. In URLs, user information, queries and fragments are replaced by `***`, since tokens are often in them.
///
/// ```
/// let api = stagger::Retrier::new(stagger::Policy::DEFAULT).named("api").on_event(stagger::observe::tracing());
/// # let _ = api;
/// ```
pub fn tracing() -> impl Fn(&Event<'_>) + Send + Sync + 'static {
    tracing_with_clock(SystemClock)
}

/// Returns a listener like [`tracing()`], whose limit is on this clock, such as that of a test.
pub fn tracing_with_clock(
    clock: impl Clock + Clone + Send + Sync + 'static,
) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
    let [retries, stops, reports] = [(); 3].map(|()| LogLimit::with_clock(clock.clone()));
    move |event| {
        if event.action == Action::Done && event.attempt <= 1 {
            return;
        }
        let (limit, is_enabled) = match event.action {
            // Rare, and limited separately, so that it does not silence the event of a call that is then given up.
            _ if event.unreachable.is_some() => (&reports, tracing::enabled!(target: "stagger", tracing::Level::WARN)),
            Action::Stop(_) => (&stops, tracing::enabled!(target: "stagger", tracing::Level::WARN)),
            _ => (&retries, tracing::enabled!(target: "stagger", tracing::Level::DEBUG)),
        };
        if !is_enabled {
            return;
        }
        match limit.admit(event.target) {
            Verbosity::Silent => {}
            Verbosity::Full { since: silenced, over } | Verbosity::Summary { silenced, over } => {
                emit(event, silenced, over);
            }
        }
    }
}

fn emit(event: &Event<'_>, silenced: u64, over: Duration) {
    let error = error_text(event);
    let millis = |length: Duration| length.as_secs_f64() * 1e3;
    let max_attempts = event.max_attempts.map_or(0, core::num::NonZeroU32::get);
    macro_rules! log {
        ($level:ident, $message:literal $(, $name:ident = $value:expr)* $(,)?) => {
            tracing::$level!(
                target: "stagger",
                target_name = event.target,
                attempt = event.attempt,
                max_attempts,
                elapsed_ms = millis(event.elapsed),
                budget_left = event.budget_left,
                // A string, and not `Display`: subscribers escape the line breaks of strings.
                error = error.as_deref(),
                silenced,
                silenced_ms = millis(over),
                $($name = $value,)*
                $message
            )
        };
    }
    match event.action {
        Action::Done => log!(debug, "succeeded"),
        Action::Retry { after, source } => {
            if let Some(unreachable) = event.unreachable {
                log!(
                    warn,
                    "unreachable",
                    delay_ms = millis(after),
                    source = source.name(),
                    unreachable_ms = millis(unreachable.lasted),
                    failed_attempts = unreachable.attempts
                );
                return;
            }
            log!(debug, "retrying", delay_ms = millis(after), source = source.name());
        }
        Action::Held { after } => log!(debug, "waiting for quiet to end", delay_ms = millis(after)),
        Action::Resumed => log!(debug, "quiet has ended"),
        Action::Stop(stop) => {
            log!(warn, "giving up", stop = stop.name(), retry_in_ms = event.retry_in.map(millis));
        }
    }
}

/// Returns the text of the event's error, without secrets.
fn error_text(event: &Event<'_>) -> Option<String> {
    Some(hide_url_secrets(&event.error_text()?).into_owned())
}
