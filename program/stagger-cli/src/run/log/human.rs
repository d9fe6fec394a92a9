use core::time::Duration;

use anstyle::{AnsiColor, Style};
use stagger_core::StopReason;
use stagger_terminal::output::line::{DIM, Line, PLAIN, short};

use super::event::{AttemptEnded, Event, NextStep};
use crate::run::status::{AttemptStatus, NoRetryReason, SignalName};

#[derive(Clone, Copy, Debug)]
pub(super) struct HumanStyle {
    pub(super) color: bool,
    pub(super) utf8: bool,
    pub(super) verbose: bool,
}

const RED: Style = AnsiColor::Red.on_default();
const GREEN: Style = AnsiColor::Green.on_default();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();

/// Formats an event for a terminal; `None` if it is not shown.
pub(super) fn line(event: &Event<'_>, style: HumanStyle) -> Option<Line> {
    let line = match event {
        Event::Started { policy, seed, .. } if style.verbose => {
            Line::default().part(DIM, format_args!("{policy}, seed {seed}"))
        }
        Event::Spread { wait } => Line::default().part(PLAIN, format_args!("first attempt in {}", short(*wait))),
        Event::Attempting(count) if style.verbose => Line::default().part(DIM, format_args!("{count}  starts")),
        // Success on the first attempt is not worth a line.
        Event::AttemptEnded(AttemptEnded { count, next: NextStep::Done, .. }) if count.n == 1 && !style.verbose => {
            return None;
        }
        Event::AttemptEnded(attempt) => attempt_ended(attempt, style),
        Event::Note { message } => Line::default().part(PLAIN, format_args!("stagger: note: {message}")),
        Event::Warning { message } => Line::default().part(YELLOW, format_args!("stagger: warning: {message}")),
        Event::Started { .. } | Event::Attempting(_) | Event::Done(_) => return None,
    };
    // The end of a line that stays is the reason, the cure or the seed.
    Some(line.wraps())
}

fn attempt_ended(attempt: &AttemptEnded, options: HumanStyle) -> Line {
    let mark = match (attempt.succeeded(), options.utf8) {
        (true, true) => "✓",
        (true, false) => "+",
        (false, true) => "✗",
        (false, false) => "x",
    };
    // The padding aligns the lines of a run in columns.
    let line = Line::default()
        .part(attempt.style(), mark)
        .part(PLAIN, format_args!(" {}  {:<18}", attempt.count, result_text(attempt)));
    match &attempt.next {
        NextStep::Done => line
            .part(PLAIN, format_args!("  total {}", short(attempt.total)))
            .part(DIM, format_args!(", waited {}", short(attempt.waited))),
        NextStep::Retry { after, bounds, retry_after, .. } => {
            let after = short(*after);
            let gap = 7_usize.saturating_sub(after.len());
            let line = line.part(PLAIN, format_args!("  waiting {after}"));
            match (retry_after, bounds) {
                (Some(retry_after), _) => {
                    line.part(DIM, format_args!("{:gap$}(retry-after {})", "", short(*retry_after)))
                }
                (None, Some((low, high))) if low < high => {
                    line.part(DIM, format_args!("{:gap$}({})", "", interval(*low, *high, options.utf8)))
                }
                (None, _) => line,
            }
        }
        NextStep::Stop { stop, reason, limit } => {
            let line = line.part(PLAIN, format_args!("  {}", stop_text(attempt, *stop, *reason, *limit)));
            if *stop == StopReason::Permanent {
                line
            } else {
                line.part(DIM, format_args!(", {}", short(attempt.total)))
            }
        }
        NextStep::Interrupted(signal) => line.part(PLAIN, format_args!("  interrupted by {}", SignalName(*signal))),
    }
}

impl AttemptEnded {
    /// Returns whether the attempt reached the `--until` outcome, even if it must do so again.
    fn succeeded(&self) -> bool {
        matches!(self.next, NextStep::Done | NextStep::Retry { repeat_success: true, .. })
    }

    /// Returns the color of its result.
    pub(super) fn style(&self) -> Style {
        if self.succeeded() { GREEN } else { RED }
    }
}

fn result_text(attempt: &AttemptEnded) -> String {
    let failed_status = attempt.http_status.filter(|status| *status >= 400);
    match attempt.status {
        AttemptStatus::Exit(1..) if let Some(status) = failed_status => {
            format!("HTTP {status} in {}", short(attempt.took))
        }
        AttemptStatus::Timeout => format!("timeout after {}", short(attempt.took)),
        AttemptStatus::NotRun(_) => attempt.status.to_string(),
        status => format!("{status} in {}", short(attempt.took)),
    }
}

fn interval(low: Duration, high: Duration, utf8: bool) -> String {
    let dash = if utf8 { '–' } else { '-' };
    // 0 is written without a unit.
    let low = if low.is_zero() { "0".to_owned() } else { short(low) };
    format!("{low}{dash}{}", short(high))
}

fn stop_text(
    attempt: &AttemptEnded,
    stop: StopReason,
    reason: Option<NoRetryReason>,
    limit: Option<Duration>,
) -> String {
    let time = limit.unwrap_or_default();
    let limit = short(time);
    match (stop, reason) {
        (_, Some(NoRetryReason::StopOn)) => format!("not retried: {} is in --stop-on", set_element(attempt.status)),
        (_, Some(NoRetryReason::NotRetryOn)) => {
            format!("not retried: {} is not in --retry-on", set_element(attempt.status))
        }
        (_, Some(NoRetryReason::StopIf)) => "not retried: the output matches --stop-if".to_owned(),
        (_, Some(NoRetryReason::NotRetryIf)) => "not retried: the output does not match --retry-if".to_owned(),
        (_, Some(NoRetryReason::Advice)) => "not retried: the command advised to stop".to_owned(),
        (_, Some(NoRetryReason::ReaderGone)) => "not retried: standard output is closed".to_owned(),
        (_, Some(NoRetryReason::HttpStatus)) => "not retried: this status is permanent".to_owned(),
        (_, Some(NoRetryReason::AnnouncedWait)) => {
            "not retried: this status is permanent; add --announced-waits if it is a rate limit".to_owned()
        }
        (_, Some(NoRetryReason::HttpExit)) => {
            format!("not retried: {} is permanent", set_element(attempt.status))
        }
        (_, Some(NoRetryReason::Server)) => "not retried: the server forbids it".to_owned(),
        (_, Some(NoRetryReason::UnsafeToRetry)) => {
            "not retried: the request may have been processed; add --idempotent if it may be sent twice".to_owned()
        }
        (StopReason::Attempts, None) if attempt.count.n == 1 => "giving up after 1 attempt".to_owned(),
        (StopReason::Attempts, None) => format!("giving up after {} attempts", attempt.count.n),
        (StopReason::Elapsed, None) => format!("giving up: max-elapsed {limit} would be exceeded"),
        (StopReason::Deadline, None) if attempt.status == AttemptStatus::Timeout && attempt.total >= time => {
            format!("giving up: --time-limit {limit} is reached")
        }
        (StopReason::Deadline, None) => format!("giving up: --time-limit {limit} would be exceeded"),
        (StopReason::Hint, None) => format!("giving up: retry-after exceeds max-hint {limit}"),
        (StopReason::BUDGET, None) => "giving up: the shared retry budget is used up".to_owned(),
        (stop, None) => format!("giving up: {stop}"),
    }
}

fn set_element(status: AttemptStatus) -> String {
    match status {
        AttemptStatus::Signal(signal) => SignalName(signal).to_string(),
        AttemptStatus::Timeout => "timeout".to_owned(),
        AttemptStatus::Exit(code) => format!("exit {code}"),
        AttemptStatus::NotRun(_) => status.code().to_string(),
    }
}
