use anstyle::{AnsiColor, Style};
use ratatui_core::buffer::{Buffer, Cell};

use crate::plot::text::RenderOptions;

/// Converts the rows of the buffer to lines of text, without trailing spaces.
pub(super) fn lines(buffer: &Buffer, options: RenderOptions) -> String {
    let mut out = String::new();
    let width = usize::from(buffer.area().width).max(1);
    for row in buffer.content().chunks(width) {
        let used = row.iter().rposition(|cell| cell.symbol() != " ").map_or(0, |last| last + 1);
        let mut style = Style::new();
        for cell in &row[..used] {
            let wanted = options.style(style_of(cell));
            if wanted != style {
                out.push_str(&format!("{style:#}{wanted}"));
                style = wanted;
            }
            out.push_str(options.glyphs.pick(cell.symbol(), ascii(cell.symbol())));
        }
        out.push_str(&format!("{style:#}\n"));
    }
    out
}

fn style_of(cell: &Cell) -> Style {
    // `Reset` and colors outside the terminal's palette have no style.
    Style::new().fg_color(AnsiColor::try_from(cell.fg).ok().map(Into::into))
}

/// Returns the ASCII character closest to a braille pattern; other symbols are ASCII already.
fn ascii(symbol: &str) -> &str {
    let Some(dots) = symbol.chars().next().and_then(|c| u32::from(c).checked_sub(0x2800)) else {
        return symbol;
    };
    // The bits of each column of dots, from the top down: Unicode 16, chapter 21.1.
    let mean = |bits: [u32; 4]| {
        let rows: Vec<f64> = (0..4).filter(|row| dots >> bits[*row] & 1 == 1).map(|row| row as f64).collect();
        (!rows.is_empty()).then(|| (rows.iter().sum::<f64>() / rows.len() as f64, rows.len()))
    };
    match (mean([0, 1, 2, 6]), mean([3, 4, 5, 7])) {
        (None, None) => " ",
        (Some((left, _)), Some((right, _))) if right - left >= 1.0 => "\\",
        (Some((left, _)), Some((right, _))) if left - right >= 1.0 => "/",
        (Some((_, 3..)), _) | (_, Some((_, 3..))) => "|",
        (Some((row, _)), _) | (_, Some((row, _))) if row < 1.0 => "'",
        (Some((row, _)), _) | (_, Some((row, _))) if row < 2.5 => "-",
        _ => ".",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_keep_their_direction_in_ascii_and_other_symbols_are_unchanged() {
        for (braille, want) in [
            ("⠀", " "),
            ("⡠", "/"),
            ("⠑", "\\"),
            ("⠉", "'"),
            ("⠒", "-"),
            ("⠤", "-"),
            ("⣀", "."),
            ("⡇", "|"),
            ("⢸", "|"),
            ("⡀", "."),
            ("+", "+"),
        ] {
            assert_eq!(ascii(braille), want, "{braille}");
        }
    }
}
