use core::num::NonZeroU64;
use core::time::Duration;

use stagger_core::text::parse_duration;
use stagger_sim::lint::{ParseValueError, Rate, parse_count};

/// A whole number of at least 1: `10000`, `10_000`, `10k`, `1.5M`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    parse_count(text).map(NonZeroU64::get).map_err(|error| error.to_string())
}

/// The same, of what is never more than four billion.
pub(crate) fn small(text: &str) -> Result<u32, String> {
    let number = count(text)?;
    u32::try_from(number).map_err(|_| format!("`{text}` is more than {}; use less", u32::MAX))
}

/// How many in a second: `500`, `500/s`, `30/min`, `2k/s`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    text.parse().map(Rate::get).map_err(|error: ParseValueError| error.to_string())
}

/// A length of time that ends.
pub(crate) fn length(text: &str) -> Result<Duration, String> {
    let length = parse_duration(text).map_err(|error| error.to_string())?;
    length.ok_or_else(|| format!("`{text}` has no end, and a length is wanted; write it like 500ms, 1.5s, 1m30s or 2h"))
}

/// Two lengths of time with a sign between them; of a single one, both are it.
pub(crate) fn lengths(text: &str, signs: &[&str]) -> Result<(Duration, Option<Duration>), String> {
    let apart = signs.iter().find_map(|sign| text.split_once(sign));
    match apart {
        Some((first, second)) => Ok((length(first)?, Some(length(second)?))),
        None => Ok((length(text)?, None)),
    }
}

/// One of several words.
pub(crate) fn one_of<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text.trim());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("`{text}` is not known here; use {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_may_come_in_pairs() {
        let ms = Duration::from_millis;
        assert_eq!(lengths("10ms..40ms", &[".."]), Ok((ms(10), Some(ms(40)))));
        assert_eq!(lengths("10ms", &[".."]), Ok((ms(10), None)));
        assert!(lengths("10ms..inf", &[".."]).is_err_and(|error| error.contains("has no end")));
    }
}
