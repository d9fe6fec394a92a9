use super::scale::{Scale, Spacing};
use super::unit::Unit;

/// A labelled place on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    /// 0 at the axis's low end, 1 at its high end.
    pub(crate) position: f64,
    /// The value, in words.
    pub(crate) label: String,
}

/// Ticks at round values, evenly spaced and at most `most` (at least two) of them.
pub(crate) fn ticks(scale: Scale, unit: Unit, most: usize) -> Vec<Tick> {
    let most = most.max(2);
    let values = match scale.spacing() {
        Spacing::Linear => even(scale, unit, most),
        Spacing::Log => {
            let landmarks: Vec<f64> = unit.landmarks().filter(|v| within(scale, *v)).collect();
            // Less than two factors of ten: landmarks would leave the axis bare.
            if landmarks.len() < 2 {
                even(scale, unit, most)
            } else {
                let every = landmarks.len().div_ceil(most);
                landmarks.into_iter().step_by(every).collect()
            }
        }
    };
    let tick = |value| Tick { position: scale.position(value), label: unit.label(value) };
    values.into_iter().map(tick).collect()
}

fn even(scale: Scale, unit: Unit, most: usize) -> Vec<f64> {
    let mut steps = unit.steps();
    let found = steps.find_map(|step| {
        // Whole multiples of the step, so that ticks do not gather rounding errors.
        let first = (scale.low() / step - ROUNDING).ceil();
        let last = (scale.high() / step + ROUNDING).floor();
        let count = last - first + 1.0;
        (count <= most as f64).then(|| {
            let multiples = (0..count as usize).map(|i| first + i as f64);
            multiples.map(|k| k * step).collect()
        })
    });
    found.unwrap_or_default()
}

/// How far, in steps, a value may lie outside its scale and count as its end.
const ROUNDING: f64 = 1e-9;

fn within(scale: Scale, value: f64) -> bool {
    let position = scale.position(value);
    (-ROUNDING..=1.0 + ROUNDING).contains(&position)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(spacing: Spacing, unit: Unit, ends: [f64; 2], most: usize) -> Vec<String> {
        let ticks = ticks(Scale::fit(spacing, ends), unit, most);
        ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_and_no_more_than_asked_for() {
        let linear = |unit, ends, most| labels(Spacing::Linear, unit, ends, most);
        assert_eq!(linear(Unit::Seconds, [0.0, 16.0], 5), ["0s", "5s", "10s", "15s"]);
        assert_eq!(linear(Unit::Seconds, [0.0, 0.3], 4), ["0s", "100ms", "200ms", "300ms"]);
        assert_eq!(linear(Unit::Seconds, [0.0, 300.0], 4), ["0s", "2m", "4m"]);
        assert_eq!(linear(Unit::Count, [1.0, 5.0], 9), ["1", "2", "3", "4", "5"]);
        assert_eq!(linear(Unit::Count, [1.0, 23.0], 6), ["5", "10", "15", "20"]);
        assert_eq!(linear(Unit::Share, [0.0, 1.0], 3), ["0%", "50%", "100%"]);
    }

    #[test]
    fn things_that_are_counted_get_no_fractions() {
        assert_eq!(labels(Spacing::Linear, Unit::Count, [1.0, 2.0], 9), ["1", "2"]);
    }

    #[test]
    fn a_log_axis_is_marked_at_its_powers_and_at_the_clocks_own() {
        let log = |ends, most| labels(Spacing::Log, Unit::Seconds, ends, most);
        assert_eq!(log([0.1, 700.0], 9), ["100ms", "1s", "10s", "1m", "10m"]);
        assert_eq!(log([0.1, 700.0], 3), ["100ms", "10s", "10m"]);
        assert_eq!(log([2.0, 9.0], 4), ["2s", "4s", "6s", "8s"]);
    }

    #[test]
    fn every_axis_has_a_tick_and_every_tick_lies_on_it() {
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
