use core::time::Duration;

use stagger_terminal::output::line::{Line, PLAIN};

use super::event::{AttemptEnded, Event, NextStep};
use super::human::YELLOW;
use crate::run::status::{AttemptStatus, SignalName};

/// Formats an event as one line of `key=value` pairs, with times in seconds; `None` if it is not logged.
pub(super) fn line(event: &Event<'_>, verbose: bool) -> Option<Line> {
    let plain = |text: String| Line::default().part(PLAIN, text);
    Some(match event {
        Event::Started { policy, seed, .. } if verbose => plain(format!("stagger: policy=\"{policy}\" seed={seed}")),
        Event::Spread { wait } => plain(format!("stagger: spread={}", seconds(*wait))),
        Event::Attempting(count) if verbose => plain(format!("stagger: attempt={count} starts")),
        Event::AttemptEnded(AttemptEnded { count, next: NextStep::Done, .. }) if count.n == 1 && !verbose => {
            return None;
        }
        Event::AttemptEnded(attempt) => attempt_ended(attempt),
        Event::Note { message } => plain(format!("stagger: note: {message}")),
        Event::Warning { message } => Line::default().part(YELLOW, format_args!("stagger: warning: {message}")),
        Event::Started { .. } | Event::Attempting(_) | Event::Done(_) => return None,
    })
}

fn attempt_ended(attempt: &AttemptEnded) -> Line {
    let http = attempt.http_status.map(|status| format!(" http={status}")).unwrap_or_default();
    let mut end = format!("{http} took={}", seconds(attempt.took));
    let totals = || format!(" total={} waited={}", seconds(attempt.total), seconds(attempt.waited));
    match &attempt.next {
        NextStep::Retry { after, retry_after, .. } => {
            end += &format!(" next={}", seconds(*after));
            if let Some(retry_after) = retry_after {
                end += &format!(" retry_after={}", seconds(*retry_after));
            }
        }
        NextStep::Done => end += &totals(),
        NextStep::Stop { stop, reason, .. } => {
            end += &format!(" stop={}", stop.name());
            if let Some(reason) = reason {
                end += &format!(" reason={}", reason.name());
            }
            end += &totals();
        }
        NextStep::Interrupted(signal) => {
            end += &format!(" stop=cancelled signal={}{}", SignalName(*signal), totals());
        }
    }
    Line::default()
        .part(PLAIN, format_args!("stagger: attempt={} ", attempt.count))
        .part(attempt.style(), format_args!("result={}", result(attempt.status)))
        .part(PLAIN, end)
}

fn result(status: AttemptStatus) -> String {
    let kind = status.kind();
    match status {
        AttemptStatus::Exit(0) | AttemptStatus::Timeout => kind.to_owned(),
        AttemptStatus::Signal(signal) => format!("{kind}:{}", SignalName(signal)),
        AttemptStatus::Exit(_) | AttemptStatus::NotRun(_) => format!("{kind}:{}", status.code()),
    }
}

/// Formats a duration in seconds: to the millisecond, and a shorter one to the microsecond or nanosecond, so that only
/// no time at all is 0.
fn seconds(length: Duration) -> String {
    let decimals = match length.as_nanos() {
        0..1_000 => 9,
        1_000..1_000_000 => 6,
        _ => 3,
    };
    let text = format!("{:.decimals$}", length.as_secs_f64());
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_no_trailing_zeros() {
        for (millis, want) in [(0, "0s"), (2, "0.002s"), (720, "0.72s"), (10_000, "10s"), (100_500, "100.5s")] {
            assert_eq!(seconds(Duration::from_millis(millis)), want);
        }
    }

    #[test]
    fn a_short_time_is_not_zero() {
        for (nanos, want) in [(1, "0.000000001s"), (1_000, "0.000001s"), (412_300, "0.000412s"), (999_999, "0.001s")] {
            assert_eq!(seconds(Duration::from_nanos(nanos)), want);
        }
    }
}
