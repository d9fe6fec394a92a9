use core::time::Duration;

use stagger_core::text::Compact;

/// A length of time to about three digits, which is what people read: `1.51s`, `26.5s`, `1m13s`.
pub(crate) fn brief(length: Duration) -> String {
    let nanos = length.as_nanos();
    // The number that will be printed before the unit.
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

/// From the least to the most: `0–16s`; one length where the two are the same.
pub(crate) fn span(least: Duration, most: Duration) -> String {
    if least == most {
        brief(least)
    } else if least.is_zero() {
        format!("0–{}", brief(most))
    } else {
        format!("{}–{}", brief(least), brief(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_at_a_glance() {
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
    fn a_span_of_nothing_is_one_length() {
        let second = Duration::from_secs(1);
        assert_eq!(span(second, second), "1s");
        assert_eq!(span(Duration::ZERO, second), "0–1s");
        assert_eq!(span(second / 2, second), "500ms–1s");
    }
}
