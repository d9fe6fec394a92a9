//! Values of flags that the scenarios of simulations and drills share.

use core::num::NonZeroU64;
use core::time::Duration;

use stagger_core::text::{ParseValueError, Rate, parse_count, parse_duration};

/// Parses an integer of at least 1: `10000`, `10_000`, `10k`, `1.5M`.
pub fn count(text: &str) -> Result<u64, String> {
    parse_count(text).map(NonZeroU64::get).map_err(|error| error.to_string())
}

/// Parses an integer of at least 1 that fits into 32 bits.
pub fn count_u32(text: &str) -> Result<u32, String> {
    let number = count(text)?;
    u32::try_from(number).map_err(|_| format!("`{text}` exceeds the maximum of {}", u32::MAX))
}

/// Parses a rate per second: `500`, `500/s`, `30/min`, `2k/s`.
pub fn rate(text: &str) -> Result<f64, String> {
    text.parse().map(Rate::get).map_err(|error: ParseValueError| error.to_string())
}

/// Parses a finite duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    let length = parse_duration(text).map_err(|error| error.to_string())?;
    length.ok_or_else(|| format!("`{text}` is not finite; expected a duration like 500ms, 1.5s, 1m30s or 2h"))
}

/// Parses two durations joined by one of `separators`, or a single one.
pub fn duration_pair(text: &str, separators: &[&str]) -> Result<(Duration, Option<Duration>), String> {
    let parts = separators.iter().find_map(|separator| text.split_once(separator));
    match parts {
        Some((first, second)) => Ok((duration(first)?, Some(duration(second)?))),
        None => Ok((duration(text)?, None)),
    }
}

/// Parses one of several keywords.
pub fn keyword<T: Copy>(text: &str, keywords: &[(&str, T)]) -> Result<T, String> {
    let found = keywords.iter().find(|(keyword, _)| *keyword == text.trim());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<&str> = keywords.iter().map(|(keyword, _)| *keyword).collect();
        format!("unknown value `{text}`; expected one of {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_durations_may_be_a_single_one() {
        let ms = Duration::from_millis;
        assert_eq!(duration_pair("10ms..40ms", &[".."]), Ok((ms(10), Some(ms(40)))));
        assert_eq!(duration_pair("10ms", &[".."]), Ok((ms(10), None)));
        assert!(duration_pair("10ms..inf", &[".."]).is_err_and(|error| error.contains("is not finite")));
    }
}
