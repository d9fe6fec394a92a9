use core::time::Duration;

use anstyle::{AnsiColor, Style};
use stagger_core::StopReason;
use stagger_core::text::Compact;

use super::super::ended::{Ended, SignalName};
use super::super::judge::Why;
use super::event::{Event, Next, Tried};
use super::line::Line;

/// How lines for people may look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) colour: bool,
    pub(super) utf8: bool,
    pub(super) verbose: bool,
}

const RED: Style = AnsiColor::Red.on_default();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(super) const DIM: Style = Style::new().dimmed();
const PLAIN: Style = Style::new();

/// A length of time as people say it: three figures are plenty.
pub(super) fn short(length: Duration) -> String {
    let decimals = match length {
        length if length < Duration::from_secs(1) => 0,
        length if length < Duration::from_secs(10) => 2,
        length if length < Duration::from_secs(60) => 1,
        _ => 0,
    };
    format!("{:.decimals$}", Compact(length))
}

/// What to write for an event on a terminal; nothing for what speaks for itself.
pub(super) fn line(event: &Event<'_>, look: Look) -> Option<Line> {
    Some(match event {
        Event::Started(started) if look.verbose => {
            Line::new().part(DIM, format_args!("{}, seed {}", started.policy, started.seed))
        }
        Event::Spread(wait) => Line::new().part(PLAIN, format_args!("first attempt in {}", short(*wait))),
        Event::Attempting(count) if look.verbose => Line::new().part(DIM, format_args!("{count}  starts")),
        // A command that works at once is nobody's news.
        Event::Tried(Tried { count, next: Next::Done, .. }) if count.n == 1 && !look.verbose => return None,
        Event::Tried(tried) => self::tried(tried, look),
        Event::Note(text) => Line::new().part(PLAIN, format_args!("stagger: note: {text}")).whole(),
        Event::Warning(text) => Line::new().part(YELLOW, format_args!("stagger: warning: {text}")).whole(),
        Event::Started(_) | Event::Attempting(_) | Event::Done(_) => return None,
    })
}

fn tried(tried: &Tried, look: Look) -> Line {
    let good = matches!(tried.next, Next::Done | Next::Retry { again: true, .. });
    let (style, mark) = match (good, look.utf8) {
        (true, true) => (GREEN, "✓"),
        (true, false) => (GREEN, "+"),
        (false, true) => (RED, "✗"),
        (false, false) => (RED, "x"),
    };
    // Lines of one run stand in columns.
    let line = Line::new().part(style, mark).part(PLAIN, format_args!(" {}  {:<18}", tried.count, result(tried)));
    match &tried.next {
        Next::Done => line
            .part(PLAIN, format_args!("  total {}", short(tried.total)))
            .part(DIM, format_args!(", waited {}", short(tried.waited))),
        Next::Retry { after, bounds, asked, .. } => {
            let after = short(*after);
            let gap = 7_usize.saturating_sub(after.len());
            let line = line.part(PLAIN, format_args!("  waiting {after}"));
            match (asked, bounds) {
                (Some(asked), _) => line.part(DIM, format_args!("{:gap$}(asked for {})", "", short(*asked))),
                (None, Some((low, high))) if low < high => {
                    line.part(DIM, format_args!("{:gap$}({})", "", interval(*low, *high, look.utf8)))
                }
                (None, _) => line,
            }
        }
        Next::Stop { stop, why, limit } => {
            let line = line.part(PLAIN, format_args!("  {}", given_up(tried, *stop, *why, *limit)));
            if *stop == StopReason::Permanent { line } else { line.part(DIM, format_args!(", {}", short(tried.total))) }
        }
        Next::Interrupted(signal) => line.part(PLAIN, format_args!("  interrupted by {}", SignalName(*signal))),
    }
}

fn result(tried: &Tried) -> String {
    match tried.ended {
        Ended::Timeout => format!("timeout after {}", short(tried.took)),
        Ended::NotRun(_) => tried.ended.to_string(),
        ended => format!("{ended} in {}", short(tried.took)),
    }
}

fn interval(low: Duration, high: Duration, utf8: bool) -> String {
    let dash = if utf8 { '–' } else { '-' };
    // A zero needs no unit.
    let low = if low.is_zero() { "0".to_owned() } else { short(low) };
    format!("{low}{dash}{}", short(high))
}

fn given_up(tried: &Tried, stop: StopReason, why: Option<Why>, limit: Option<Duration>) -> String {
    let limit = limit.map(short).unwrap_or_default();
    match (stop, why) {
        (_, Some(Why::StopOn)) => format!("not retried: --stop-on has {}", named(tried.ended)),
        (_, Some(Why::NotRetryOn)) => format!("not retried: --retry-on has no {}", named(tried.ended)),
        (_, Some(Why::StopIf)) => "not retried: the output matches --stop-if".to_owned(),
        (_, Some(Why::NotRetryIf)) => "not retried: the output does not match --retry-if".to_owned(),
        (_, Some(Why::Advice)) => "not retried: the command advised to stop".to_owned(),
        (_, Some(Why::ReaderGone)) => "not retried: nobody reads standard output any more".to_owned(),
        (StopReason::Attempts, None) if tried.count.n == 1 => "giving up after 1 attempt".to_owned(),
        (StopReason::Attempts, None) => format!("giving up after {} attempts", tried.count.n),
        (StopReason::Elapsed, None) => format!("giving up: the next attempt would start later than {limit}"),
        (StopReason::Hint, None) => format!("giving up: the command asked for more than max-hint={limit}"),
        (stop, None) => format!("giving up: {stop}"),
    }
}

fn named(ended: Ended) -> String {
    match ended {
        Ended::Signal(signal) => SignalName(signal).to_string(),
        Ended::Timeout => "timeout".to_owned(),
        Ended::Exit(_) | Ended::NotRun(_) => ended.code().to_string(),
    }
}
