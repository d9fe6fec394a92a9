use core::time::Duration;

use super::entry::LogEntry;
use super::plain::length;

/// Reads a delay from a sentence of a program's log, such as `Attempt 1 failed. Retrying in 0.134s`. Returns `None` if
/// the line is not such a sentence.
///
/// The delay is the length of time after `in`, `for` or `after`, which must follow a form of `retry`, `sleep`, `wait`
/// or `back off`. The number of an attempt that has failed, before that, is the number of the retry.
pub(super) fn read(line: usize, text: &str) -> Option<LogEntry> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let waits =
        |word: &&str| ["retry", "sleep", "wait", "backing", "backoff"].iter().any(|verb| bare(word).starts_with(verb));
    let verb = words.iter().position(waits)?;
    let place = words[verb..].iter().position(|word| matches!(bare(word), "in" | "for" | "after"))? + verb;
    let delay = delay(bare(words.get(place + 1)?), words.get(place + 2).map(|unit| bare(unit)))?;
    let attempt = words[..verb].iter().position(|word| bare(word) == "attempt");
    let number = attempt.and_then(|attempt| bare(words.get(attempt + 1)?).split(['/', ':']).next()?.parse().ok());
    Some(LogEntry { line, delay, client: None, retry: number.filter(|retry| *retry > 0), time: None })
}

/// Returns a word without the punctuation around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

fn delay(number: &str, next: Option<&str>) -> Option<Duration> {
    if number.parse::<f64>().is_err() {
        return length(number).ok();
    }
    // Without a unit these are seconds.
    let unit = match next {
        Some("ms" | "millis" | "milliseconds" | "millisecond") => "ms",
        Some("m" | "min" | "minute" | "minutes") => "m",
        _ => "s",
    };
    length(&format!("{number}{unit}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_sentences_are_read() {
        for (text, millis, retry) in [
            ("Attempt 1 failed. Retrying in 0.134s", 134, Some(1)),
            ("Attempt 2/5 failed: connection refused. Retrying in 1.5s...", 1_500, Some(2)),
            ("WARN attempt #3 failed, retrying in 250 ms", 250, Some(3)),
            ("Request failed, retrying after 2 seconds (attempt 4)", 2_000, None),
            ("sleeping for 1.25 before the next try", 1_250, None),
            ("Backing off for 1 minute.", 60_000, None),
        ] {
            let entry = read(7, text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((entry.line, entry.delay.as_millis(), entry.retry), (7, millis, retry), "{text}");
        }
    }

    #[test]
    fn other_lines_are_not_sentences() {
        for text in
            ["1.5 a 1", "retry", "retrying in", "retrying in a while", "in 5s", "delay,client,retry", "retry 5s"]
        {
            assert_eq!(read(1, text), None, "{text}");
        }
    }
}
