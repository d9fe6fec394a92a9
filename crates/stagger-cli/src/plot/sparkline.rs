use super::render_options::Glyphs;

/// One character a value, as high as the value is beside the greatest: `▂▅▇█▃▁`.
///
/// What is above zero never looks like nothing.
pub(crate) fn sparkline(values: &[f64], glyphs: Glyphs) -> String {
    let levels = glyphs.levels();
    let top = levels.len() - 1;
    let greatest = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let level = |value: f64| {
        // NaN and what is negative stay at the bottom.
        if value > 0.0 && greatest > 0.0 { ((value / greatest * top as f64).round() as usize).clamp(1, top) } else { 0 }
    };
    values.iter().map(|value| levels[level(*value)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_value_fills_its_cell_and_only_zero_is_blank() {
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
