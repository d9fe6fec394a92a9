use core::time::Duration;

use super::super::ended::{Ended, SignalName};
use super::event::{Event, Next, Tried};

/// What to write for an event where nobody watches: one line of `key=value`, times in seconds.
pub(super) fn line(event: &Event<'_>, verbose: bool) -> Option<String> {
    Some(match event {
        Event::Started(started) if verbose => {
            format!("stagger: policy=\"{}\" seed={}", started.policy, started.seed)
        }
        Event::Spread(wait) => format!("stagger: spread={}", seconds(*wait)),
        Event::Attempting(count) if verbose => format!("stagger: attempt={count} starts"),
        Event::Tried(Tried { count, next: Next::Done, .. }) if count.n == 1 && !verbose => return None,
        Event::Tried(tried) => self::tried(tried),
        Event::Note(text) => format!("stagger: note: {text}"),
        Event::Warning(text) => format!("stagger: warning: {text}"),
        Event::Started(_) | Event::Attempting(_) | Event::Done(_) => return None,
    })
}

fn tried(tried: &Tried) -> String {
    let mut line =
        format!("stagger: attempt={} result={} took={}", tried.count, result(tried.ended), seconds(tried.took));
    match &tried.next {
        Next::Retry { after, asked, .. } => {
            line += &format!(" next={}", seconds(*after));
            if let Some(asked) = asked {
                line += &format!(" asked={}", seconds(*asked));
            }
            return line;
        }
        Next::Done => {}
        Next::Stop { stop, why, .. } => {
            line += &format!(" stop={}", stop.name());
            if let Some(why) = why {
                line += &format!(" why={}", why.name());
            }
        }
        Next::Interrupted(signal) => line += &format!(" stop=cancelled signal={}", SignalName(*signal)),
    }
    line + &format!(" total={} waited={}", seconds(tried.total), seconds(tried.waited))
}

fn result(ended: Ended) -> String {
    match ended {
        Ended::Exit(0) => "ok".to_owned(),
        Ended::Exit(code) => format!("exit:{code}"),
        Ended::Signal(signal) => format!("signal:{}", SignalName(signal)),
        Ended::Timeout => "timeout".to_owned(),
        Ended::NotRun(_) => format!("not-run:{}", ended.code()),
    }
}

/// To the millisecond.
fn seconds(length: Duration) -> String {
    let text = format!("{:.3}", length.as_secs_f64());
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_no_empty_decimals() {
        for (millis, want) in [(0, "0s"), (2, "0.002s"), (720, "0.72s"), (10_000, "10s"), (100_500, "100.5s")] {
            assert_eq!(seconds(Duration::from_millis(millis)), want);
        }
    }
}
