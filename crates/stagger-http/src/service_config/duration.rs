use core::time::Duration;

/// The maximum of protobuf's `Duration`, about 10,000 years, in seconds.
const MAX_SECS: u64 = 315_576_000_000;

/// Parses the JSON of a protobuf `Duration` exactly: seconds with up to nine decimals and an `s`. Also accepts `.5s`,
/// which gRPC in Go accepts and many configs for it contain. Returns `None` if it is malformed, negative or too long.
///
/// ```
/// use core::time::Duration;
/// use stagger_http::service_config::fields::parse_duration;
///
/// assert_eq!(parse_duration("1.5s"), Some(Duration::from_millis(1_500)));
/// assert_eq!(parse_duration("1500ms"), None);
/// ```
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let whole = if whole.is_empty() && number.starts_with('.') { "0" } else { whole };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 9 {
        return None;
    }
    let seconds: u64 = whole.parse().ok()?;
    if seconds > MAX_SECS {
        return None;
    }
    let nanos: u32 = format!("{decimals:0<9}").parse().ok()?;
    Some(Duration::new(seconds, nanos))
}

/// Formats a duration as the JSON of a protobuf `Duration`: seconds, with as many decimals as it needs.
///
/// ```
/// # use core::time::Duration;
/// assert_eq!(stagger_http::service_config::fields::format_duration(Duration::from_millis(1_500)), "1.5s");
/// ```
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let (whole, nanos) = (duration.as_secs(), duration.subsec_nanos());
    if nanos == 0 {
        return format!("{whole}s");
    }
    let decimals = format!("{nanos:09}");
    format!("{whole}.{}s", decimals.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_exactly() {
        for (text, want) in [
            ("1s", Some(Duration::from_secs(1))),
            ("1.5s", Some(Duration::from_millis(1500))),
            ("0.1s", Some(Duration::from_millis(100))),
            ("1.000340012s", Some(Duration::new(1, 340_012))),
            ("315576000000s", Some(Duration::from_secs(MAX_SECS))),
            ("315576000001s", None),
            ("0s", Some(Duration::ZERO)),
            ("-1s", None),
            ("+1s", None),
            (".5s", Some(Duration::from_millis(500))),
            (".s", None),
            ("1.s", None),
            ("1.0000000001s", None),
            ("1e3s", None),
            ("1", None),
            ("1ms", None),
            (" 1s", None),
            ("", None),
            ("s", None),
        ] {
            assert_eq!(parse_duration(text), want, "{text:?}");
        }
    }

    #[test]
    fn durations_are_formatted_exactly_without_trailing_zeros() {
        for (duration, want) in [
            (Duration::from_millis(1500), "1.5s"),
            (Duration::from_secs(90), "90s"),
            (Duration::from_nanos(1), "0.000000001s"),
            (Duration::ZERO, "0s"),
        ] {
            assert_eq!((format_duration(duration).as_str(), parse_duration(want)), (want, Some(duration)));
        }
    }
}
