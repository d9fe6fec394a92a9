use core::time::Duration;

use stagger_core::text::Compact;

/// Formats a duration with about three digits, for humans: `1.51s`, `26.5s`, `1m13s`.
pub fn brief(length: Duration) -> String {
    let nanos = length.as_nanos();
    // The number printed before the unit.
    let number = match nanos {
        0..1_000 => nanos,
        1_000..1_000_000 => nanos / 1_000,
        1_000_000..1_000_000_000 => nanos / 1_000_000,
        1_000_000_000..60_000_000_000 => nanos / 1_000_000_000,
        _ => 100,
    };
    let decimals = match number {
        0..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    format!("{:.decimals$}", Compact(length))
}

/// Formats an interval: `0–16s`; a single duration if both ends are equal.
pub(super) fn span(min: Duration, max: Duration) -> String {
    if min == max {
        brief(min)
    } else if min.is_zero() {
        format!("0–{}", brief(max))
    } else {
        format!("{}–{}", brief(min), brief(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_about_three_digits() {
        for (nanos, want) in [
            (0, "0s"),
            (1_512_345_678, "1.51s"),
            (26_540_000_000, "26.5s"),
            (123_456_789, "123ms"),
            (1_500_000, "1.5ms"),
            (73_400_000_000, "1m13s"),
            (7_200_000_000_000, "2h"),
        ] {
            assert_eq!(brief(Duration::from_nanos(nanos)), want);
        }
    }

    #[test]
    fn an_empty_interval_is_one_duration() {
        let second = Duration::from_secs(1);
        assert_eq!(span(second, second), "1s");
        assert_eq!(span(Duration::ZERO, second), "0–1s");
        assert_eq!(span(second / 2, second), "500ms–1s");
    }
}
