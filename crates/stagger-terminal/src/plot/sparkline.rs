use super::render_options::Glyphs;

/// Formats values as one character each, with a height relative to the maximum: `▂▅▇█▃▁`.
///
/// A value above zero is never blank.
pub fn sparkline(values: &[f64], glyphs: Glyphs) -> String {
    let levels = glyphs.levels();
    let top = levels.len() - 1;
    let max = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let level = |value: f64| {
        // NaN and negative values are blank.
        if value > 0.0 && max > 0.0 { ((value / max * top as f64).round() as usize).clamp(1, top) } else { 0 }
    };
    values.iter().map(|value| levels[level(*value)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_fills_its_cell_and_only_zero_is_blank() {
        assert_eq!(sparkline(&[0.0, 1e-9, 4.0, 8.0], Glyphs::Unicode), " ▁▄█");
        assert_eq!(sparkline(&[0.0, 1e-9, 4.0, 7.0], Glyphs::Ascii), " .=#");
    }

    #[test]
    fn values_that_cannot_be_drawn_are_blank() {
        assert_eq!(sparkline(&[f64::NAN, -1.0, 2.0], Glyphs::Unicode), "  █");
        assert_eq!(sparkline(&[0.0, 0.0], Glyphs::Unicode), "  ");
        assert_eq!(sparkline(&[], Glyphs::Unicode), "");
    }
}
