use super::scale::{Scale, Spacing};
use super::unit::Unit;

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
    let mut steps = unit.steps();
    let found = steps.find_map(|step| {
        // Whole multiples of the step, so that rounding errors do not accumulate.
        let first = (scale.low / step - ROUNDING).ceil();
        let last = (scale.high / step + ROUNDING).floor();
        let count = last - first + 1.0;
        (count <= max as f64).then(|| {
            let multiples = (0..count as usize).map(|i| first + i as f64);
            multiples.map(|k| k * step).collect()
        })
    });
    found.unwrap_or_default()
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
