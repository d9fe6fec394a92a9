use core::time::Duration;

use clap::ValueEnum;
use stagger_core::text::Compact;

/// The spacing of values along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Spacing {
    /// Linear scale
    #[default]
    Linear,
    /// Logarithmic scale, for delays of different magnitudes
    Log,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    pub(super) spacing: Spacing,
    pub(super) low: f64,
    pub high: f64,
}

impl Scale {
    /// Returns the narrowest scale that includes every value; non-finite values are ignored.
    ///
    /// The range is never empty: if all values are equal, they are in the middle.
    pub fn fit(spacing: Spacing, values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = values
            .into_iter()
            .filter(|v| v.is_finite() && (spacing == Spacing::Linear || *v > 0.0))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low < high {
            (low, high)
        } else if low.is_finite() && low.abs() > 0.0 {
            (low - low.abs() / 2.0, low + low.abs() / 2.0)
        } else if spacing == Spacing::Log {
            (0.1, 1.0)
        } else {
            (0.0, 1.0)
        };
        Self { spacing, low, high }
    }

    /// Returns the position of a value: 0 at the low end, 1 at the high end. On a logarithmic scale, zero and negative
    /// values are at the low end.
    pub fn position(self, value: f64) -> f64 {
        match self.spacing {
            Spacing::Linear => (value - self.low) / (self.high - self.low),
            Spacing::Log if value <= 0.0 => 0.0,
            Spacing::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// Returns one of `parts` equally long parts of the axis, numbered from 0.
    pub fn part(self, part: u32, parts: u32) -> Self {
        let at = |part: u32| {
            let position = f64::from(part) / f64::from(parts);
            match self.spacing {
                Spacing::Linear => self.low + position * (self.high - self.low),
                Spacing::Log => self.low * (self.high / self.low).powf(position),
            }
        };
        Self { low: at(part), high: at(part + 1), ..self }
    }
}

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

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    /// Position: 0 at the low end of the axis, 1 at its high end.
    pub position: f64,
    pub label: String,
}

/// Returns evenly spaced ticks at round values, at max `max` (at least two).
pub(super) fn ticks(scale: Scale, unit: Unit, max: usize) -> Vec<Tick> {
    tick_values(scale, unit, max.max(2)).into_iter().map(|value| Tick::new(scale, unit, value)).collect()
}

/// Returns ticks for a part of the axis, of which `1 / 2^zoom` is shown: about `max` in each such part.
pub(super) fn zoomed_ticks(scale: Scale, unit: Unit, max: usize, zoom: u32) -> Vec<Tick> {
    let parts = 1_u32 << zoom;
    let mut values: Vec<f64> = match scale.spacing {
        // The same step in all parts.
        Spacing::Linear => tick_values(scale, unit, max * parts as usize),
        Spacing::Log => (0..parts).flat_map(|part| tick_values(scale.part(part, parts), unit, max)).collect(),
    };
    values.dedup();
    values.into_iter().map(|value| Tick::new(scale, unit, value)).collect()
}

impl Tick {
    fn new(scale: Scale, unit: Unit, value: f64) -> Self {
        Self { position: scale.position(value), label: unit.label(value) }
    }
}

fn tick_values(scale: Scale, unit: Unit, max: usize) -> Vec<f64> {
    match scale.spacing {
        Spacing::Linear => even(scale, unit, max),
        Spacing::Log => {
            let log_ticks: Vec<f64> = unit.log_ticks().filter(|v| within(scale, *v)).collect();
            // Less than two powers of ten: use evenly spaced ticks instead.
            if log_ticks.len() < 2 {
                even(scale, unit, max)
            } else {
                let every = log_ticks.len().div_ceil(max);
                log_ticks.into_iter().step_by(every).collect()
            }
        }
    }
}

fn even(scale: Scale, unit: Unit, max: usize) -> Vec<f64> {
    for step in unit.steps() {
        // Whole multiples of the step, so that rounding errors do not accumulate.
        let first = (scale.low / step - ROUNDING).ceil();
        let last = (scale.high / step + ROUNDING).floor();
        let count = last - first + 1.0;
        if count <= max as f64 {
            return (0..count as usize).map(|i| (first + i as f64) * step).collect();
        }
    }
    Vec::new()
}

/// Tolerance for values at the ends of the scale, in steps.
const ROUNDING: f64 = 1e-9;

fn within(scale: Scale, value: f64) -> bool {
    let position = scale.position(value);
    (-ROUNDING..=1.0 + ROUNDING).contains(&position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_follow_the_spacing() {
        use Spacing::{Linear, Log};
        for (what, spacing, values, value, want) in [
            ("the low end is at zero", Linear, &[2.0, 8.0, 4.0][..], 2.0, 0.0),
            ("the low end is at zero", Log, &[2.0, 8.0, 4.0], 2.0, 0.0),
            ("the high end is at one", Linear, &[2.0, 8.0, 4.0], 8.0, 1.0),
            ("the high end is at one", Log, &[2.0, 8.0, 4.0], 8.0, 1.0),
            ("equal ratios get equal space", Log, &[1.0, 100.0], 10.0, 0.5),
            ("zero is at the low end of a log scale", Log, &[0.0, 1.0, 100.0], 0.0, 0.0),
            ("zero does not extend a log scale", Log, &[0.0, 1.0, 100.0], 1.0, 0.0),
            ("a single value is in the middle", Linear, &[3.0], 3.0, 0.5),
        ] {
            let position = Scale::fit(spacing, values.iter().copied()).position(value);
            assert!((position - want).abs() < 1e-12, "{what}: {spacing:?} {values:?}: {position}");
        }
    }

    #[test]
    fn no_set_of_values_gives_an_empty_range() {
        for spacing in [Spacing::Linear, Spacing::Log] {
            for values in [&[][..], &[0.0], &[3.0, 3.0], &[-3.0], &[f64::NAN, f64::INFINITY]] {
                let scale = Scale::fit(spacing, values.iter().copied());
                assert!(scale.low < scale.high, "{spacing:?} of {values:?}");
                assert!(scale.position(scale.low).is_finite());
            }
        }
    }

    #[test]
    fn the_parts_of_a_scale_are_equally_long_and_adjacent() {
        for spacing in [Spacing::Linear, Spacing::Log] {
            let scale = Scale::fit(spacing, [1.0, 81.0]);
            let ends = (0..4).flat_map(|part| [scale.part(part, 4).low, scale.part(part, 4).high]);
            let quarters: Vec<f64> = ends.map(|end| (scale.position(end) * 4e6).round() / 1e6).collect();
            let labels: Vec<String> = quarters.iter().map(ToString::to_string).collect();
            assert_eq!(labels, ["0", "1", "1", "2", "2", "3", "3", "4"], "{spacing:?}");
        }
    }

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

    fn labels(spacing: Spacing, unit: Unit, ends: [f64; 2], max: usize) -> Vec<String> {
        let ticks = ticks(Scale::fit(spacing, ends), unit, max);
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_and_at_most_the_maximum() {
        let linear = |unit, ends, max| labels(Spacing::Linear, unit, ends, max);
        assert_eq!(linear(Unit::Seconds, [0.0, 16.0], 5), ["0s", "5s", "10s", "15s"]);
        assert_eq!(linear(Unit::Seconds, [0.0, 0.3], 4), ["0s", "100ms", "200ms", "300ms"]);
        assert_eq!(linear(Unit::Seconds, [0.0, 300.0], 4), ["0s", "2m", "4m"]);
        assert_eq!(linear(Unit::Count, [1.0, 5.0], 9), ["1", "2", "3", "4", "5"]);
        assert_eq!(linear(Unit::Count, [1.0, 23.0], 6), ["5", "10", "15", "20"]);
        assert_eq!(linear(Unit::Share, [0.0, 1.0], 3), ["0%", "50%", "100%"]);
        assert_eq!(linear(Unit::Count, [1.0, 2.0], 9), ["1", "2"], "counts have no fractional ticks");
    }

    #[test]
    fn a_log_axis_has_ticks_at_powers_of_ten_and_at_clock_units() {
        let log = |ends, max| labels(Spacing::Log, Unit::Seconds, ends, max);
        assert_eq!(log([0.1, 700.0], 9), ["100ms", "1s", "10s", "1m", "10m"]);
        assert_eq!(log([0.1, 700.0], 3), ["100ms", "10s", "10m"]);
        assert_eq!(log([2.0, 9.0], 4), ["2s", "4s", "6s", "8s"]);
    }

    #[test]
    fn a_zoomed_axis_has_finer_ticks_in_each_part() {
        for (spacing, unit, ends) in [
            (Spacing::Linear, Unit::Seconds, [0.0, 100.0]),
            (Spacing::Linear, Unit::Share, [0.0, 1.0]),
            (Spacing::Log, Unit::Seconds, [0.1, 700.0]),
        ] {
            for zoom in 0..=4 {
                let ticks = zoomed_ticks(Scale::fit(spacing, ends), unit, 8, zoom);
                assert!(ticks.is_sorted_by(|a, b| a.position < b.position), "{unit:?} {zoom}: {ticks:?}");
                let parts = f64::from(1 << zoom);
                for part in 0..1 << zoom {
                    let part = f64::from(part) / parts..=f64::from(part + 1) / parts;
                    let count = ticks.iter().filter(|tick| part.contains(&tick.position)).count();
                    assert!((2..=9).contains(&count), "{spacing:?} {unit:?}, {zoom}: {count} ticks in {part:?}");
                }
            }
        }
    }

    #[test]
    fn the_ticks_of_a_zoomed_linear_axis_are_evenly_spaced() {
        let ticks = zoomed_ticks(Scale::fit(Spacing::Linear, [0.0, 100.0]), Unit::Seconds, 8, 2);
        let labels: Vec<_> = ticks.iter().take(4).map(|tick| &*tick.label).collect();
        assert_eq!((ticks.len(), &labels[..]), (21, &["0s", "5s", "10s", "15s"][..]));
    }

    #[test]
    fn every_tick_is_on_its_axis() {
        for unit in [Unit::Count, Unit::Seconds, Unit::Share] {
            for spacing in [Spacing::Linear, Spacing::Log] {
                for high in [1e-6, 0.02, 0.999, 1.0, 7.3, 61.0, 86_399.0, 1e7, 1.8e10] {
                    for low in [0.0, high / 3.0, high * 0.99] {
                        let marked = ticks(Scale::fit(spacing, [low, high]), unit, 6);
                        assert!(marked.len() <= 6, "{unit:?} {spacing:?} {low}..{high}");
                        for Tick { position, label } in marked {
                            assert!((-1e-6..=1.0 + 1e-6).contains(&position), "{label}");
                        }
                    }
                }
            }
        }
    }
}
