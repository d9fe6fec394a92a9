use clap::ValueEnum;

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
}
