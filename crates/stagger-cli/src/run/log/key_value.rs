use core::time::Duration;

use super::super::status::{AttemptStatus, SignalName};
use super::event::{AttemptEnded, Event, NextStep};

/// Formats an event as one line of `key=value` pairs, with times in seconds; `None` if it is not logged.
pub(super) fn line(event: &Event<'_>, verbose: bool) -> Option<String> {
    Some(match event {
        Event::Started { policy, seed, .. } if verbose => format!("stagger: policy=\"{policy}\" seed={seed}"),
        Event::Spread { wait } => format!("stagger: spread={}", seconds(*wait)),
        Event::Attempting(count) if verbose => format!("stagger: attempt={count} starts"),
        Event::AttemptEnded(AttemptEnded { count, next: NextStep::Done, .. }) if count.n == 1 && !verbose => {
            return None;
        }
        Event::AttemptEnded(attempt) => attempt_ended(attempt),
        Event::Note { message } => format!("stagger: note: {message}"),
        Event::Warning { message } => format!("stagger: warning: {message}"),
        Event::Started { .. } | Event::Attempting(_) | Event::Done(_) => return None,
    })
}

fn attempt_ended(attempt: &AttemptEnded) -> String {
    let http = attempt.http_status.map(|status| format!(" http={status}")).unwrap_or_default();
    let (result, took) = (result(attempt.status), seconds(attempt.took));
    let mut line = format!("stagger: attempt={} result={result}{http} took={took}", attempt.count);
    match &attempt.next {
        NextStep::Retry { after, retry_after, .. } => {
            line += &format!(" next={}", seconds(*after));
            if let Some(retry_after) = retry_after {
                line += &format!(" retry_after={}", seconds(*retry_after));
            }
            return line;
        }
        NextStep::Done => {}
        NextStep::Stop { stop, reason, .. } => {
            line += &format!(" stop={}", stop.name());
            if let Some(reason) = reason {
                line += &format!(" reason={}", reason.name());
            }
        }
        NextStep::Interrupted(signal) => line += &format!(" stop=cancelled signal={}", SignalName(*signal)),
    }
    line + &format!(" total={} waited={}", seconds(attempt.total), seconds(attempt.waited))
}

fn result(status: AttemptStatus) -> String {
    let kind = status.kind();
    match status {
        AttemptStatus::Exit(0) | AttemptStatus::Timeout => kind.to_owned(),
        AttemptStatus::Signal(signal) => format!("{kind}:{}", SignalName(signal)),
        AttemptStatus::Exit(_) | AttemptStatus::NotRun(_) => format!("{kind}:{}", status.code()),
    }
}

/// Formats a duration in seconds, to the millisecond.
fn seconds(length: Duration) -> String {
    let text = format!("{:.3}", length.as_secs_f64());
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
}
