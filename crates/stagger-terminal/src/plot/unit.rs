use core::time::Duration;

use stagger_core::text::Compact;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Count,
    Seconds,
    /// Shares from 0 to 1.
    Share,
}

/// Round steps: one, two or five times a power of ten.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

/// Round steps of time, from one second to half a day.
const CLOCK: [f64; 17] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10_800.0, 21_600.0,
    43_200.0,
];

const DAY: f64 = 86_400.0;

impl Unit {
    /// Returns the round distances between two ticks, smallest first.
    pub fn steps(self) -> Box<dyn Iterator<Item = f64>> {
        match self {
            Self::Count => Box::new(decades(0, 1.0)),
            Self::Share => Box::new(decades(-6, 1.0)),
            Self::Seconds => {
                Box::new(decades(-9, 1.0).take_while(|step| *step < CLOCK[0]).chain(CLOCK).chain(decades(0, DAY)))
            }
        }
    }

    /// Returns the tick values of a logarithmic axis, smallest first: about one for each power of ten.
    pub fn log_ticks(self) -> Box<dyn Iterator<Item = f64>> {
        match self {
            Self::Count => Box::new((0..=18).map(|exponent| 10f64.powi(exponent))),
            Self::Share => Box::new((-6..=0).map(|exponent| 10f64.powi(exponent))),
            Self::Seconds => Box::new(
                (-9..=0)
                    .map(|exponent| 10f64.powi(exponent))
                    .chain([10.0, 60.0, 600.0, 3600.0, 36_000.0])
                    .chain((0..=9).map(|exponent| DAY * 10f64.powi(exponent))),
            ),
        }
    }

    pub fn label(self, value: f64) -> String {
        match self {
            Self::Count => grouped(value),
            Self::Seconds => seconds(value),
            Self::Share => format!("{}%", plain(value * 100.0)),
        }
    }
}

fn decades(from: i32, unit: f64) -> impl Iterator<Item = f64> {
    (from..=18).flat_map(move |exponent| ROUND.map(|step| unit * step * 10f64.powi(exponent)))
}

/// Formats a duration in seconds, to the nanosecond; values out of the range of `Duration` are clamped.
fn seconds(value: f64) -> String {
    let rounded = (value * 1e9).round() / 1e9;
    let length = Duration::try_from_secs_f64(rounded.max(0.0)).unwrap_or(Duration::MAX);
    Compact(length).to_string()
}

/// Formats a number, rounded to six decimals to hide binary fractions.
fn plain(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

/// Formats a number with thousands separators: `17,980`.
fn grouped(value: f64) -> String {
    let text = plain(value);
    let (sign, digits) = text.strip_prefix('-').map_or(("", &*text), |d| ("-", d));
    let (whole, fraction) = digits.find('.').map_or((digits, ""), |at| digits.split_at(at));
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_include_their_unit() {
        for (unit, value, want) in [
            (Unit::Count, 0.0, "0"),
            (Unit::Count, 2.5, "2.5"),
            (Unit::Count, 999.0, "999"),
            (Unit::Count, 17_980.0, "17,980"),
            (Unit::Count, -1_234_567.0, "-1,234,567"),
            (Unit::Seconds, 0.0, "0s"),
            (Unit::Seconds, 0.1 + 0.2, "300ms"),
            (Unit::Seconds, 1.5, "1.5s"),
            (Unit::Seconds, 90.0, "1m30s"),
            (Unit::Seconds, 7200.0, "2h"),
            (Unit::Share, 0.07, "7%"),
            (Unit::Share, 1.0, "100%"),
        ] {
            assert_eq!(unit.label(value), want, "{unit:?} {value}");
        }
    }

    #[test]
    fn steps_and_log_ticks_increase() {
        for unit in [Unit::Count, Unit::Seconds, Unit::Share] {
            assert!(unit.steps().is_sorted_by(|a, b| a < b), "steps of {unit:?}");
            assert!(unit.log_ticks().is_sorted_by(|a, b| a < b), "log_ticks of {unit:?}");
        }
    }

    #[test]
    fn time_steps_are_clock_units() {
        let steps: Vec<String> = Unit::Seconds.steps().map(|s| Unit::Seconds.label(s)).collect();
        let minute = steps.iter().position(|s| s == "1m").expect("a minute is a step");
        assert_eq!(steps[minute - 2..minute + 3], ["15s", "30s", "1m", "2m", "5m"]);
    }

    #[test]
    fn a_value_beyond_duration_max_has_a_label() {
        assert_eq!(Unit::Seconds.label(f64::MAX), Compact(Duration::MAX).to_string());
    }
}
