//! A rectangle of characters with colors, on which lines are drawn with braille patterns.

use anstyle::{AnsiColor, Style};

use crate::plot::text::RenderOptions;

/// The characters of a figure, row by row.
#[derive(Debug)]
pub(super) struct Canvas {
    columns: u16,
    cells: Vec<Cell>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    glyph: char,
    /// `None` for the color of text.
    color: Option<AnsiColor>,
}

/// The part of a canvas between its axes, which begins in the first row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) left: u16,
    pub(super) width: u16,
    pub(super) height: u16,
}

impl Field {
    /// Returns the first column right of the field.
    pub(super) fn right(self) -> u16 {
        self.left + self.width
    }
}

impl Canvas {
    pub(super) fn new(columns: u16, rows: u16) -> Self {
        let blank = Cell { glyph: ' ', color: None };
        Self { columns, cells: vec![blank; usize::from(columns) * usize::from(rows)] }
    }

    /// Sets one character; outside of the canvas, nothing.
    pub(super) fn set(&mut self, column: u16, row: u16, glyph: char, color: Option<AnsiColor>) {
        if column < self.columns
            && let Some(cell) = self.cells.get_mut(usize::from(row) * usize::from(self.columns) + usize::from(column))
        {
            *cell = Cell { glyph, color };
        }
    }

    /// Writes text without color, as far as the row goes. Each character takes one column.
    pub(super) fn write(&mut self, column: u16, row: u16, text: &str) {
        for (at, glyph) in (column..self.columns).zip(text.chars()) {
            self.set(at, row, glyph, None);
        }
    }

    /// Draws lines over what is in the field. Cells without dots stay as they are.
    pub(super) fn draw(&mut self, lines: &BrailleLines, color: Option<AnsiColor>) {
        let Field { left, width, .. } = lines.field;
        for (row, patterns) in (0..).zip(lines.patterns.chunks(usize::from(width))) {
            for (column, &pattern) in (left..).zip(patterns) {
                if pattern != 0 {
                    let glyph = char::from_u32(BRAILLE + u32::from(pattern)).unwrap_or(' ');
                    self.set(column, row, glyph, color);
                }
            }
        }
    }

    /// Returns the rows as lines of text, without trailing spaces.
    pub(super) fn lines(&self, options: RenderOptions) -> String {
        let mut out = String::new();
        for row in self.cells.chunks(usize::from(self.columns)) {
            let used = row.iter().rposition(|cell| cell.glyph != ' ').map_or(0, |last| last + 1);
            let mut style = Style::new();
            for cell in &row[..used] {
                let wanted = options.style(Style::new().fg_color(cell.color.map(Into::into)));
                if wanted != style {
                    out.push_str(&format!("{style:#}{wanted}"));
                    style = wanted;
                }
                out.push(options.glyphs.pick(cell.glyph, ascii(cell.glyph)));
            }
            out.push_str(&format!("{style:#}\n"));
        }
        out
    }
}

/// The first braille pattern, which has no dots.
const BRAILLE: u32 = 0x2800;

/// The bits of the dots of a pattern, column by column from the top down: Unicode 16, chapter 21.1.
const DOTS: [[u8; 4]; 2] = [[0, 1, 2, 6], [3, 4, 5, 7]];

/// Lines in a field, drawn with the two by four dots that each cell has.
#[derive(Debug)]
pub(super) struct BrailleLines {
    field: Field,
    patterns: Vec<u8>,
}

impl BrailleLines {
    pub(super) fn new(field: Field) -> Self {
        Self { field, patterns: vec![0; usize::from(field.width) * usize::from(field.height)] }
    }

    /// Draws a line between two positions, from (0, 0), bottom left, to (1, 1), with the algorithm of Bresenham.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (self.dot(from), self.dot(to));
        let is_flat = y1.abs_diff(y2) < x1.abs_diff(x2);
        // A step along the longer side sets one dot, and may move along the other side.
        let mut ends = if is_flat { [(x1, y1), (x2, y2)] } else { [(y1, x1), (y2, x2)] };
        ends.sort_by_key(|(along, _)| *along);
        let [(start, mut across), (end, last)] = ends;
        let (length, width) = (end - start, (last - across).abs());
        let direction = (last - across).signum();
        let mut error = 2 * width - length;
        for along in start..=end {
            if is_flat {
                self.set(along, across)
            } else {
                self.set(across, along)
            }
            if error > 0 {
                across += direction;
                error -= 2 * length;
            }
            error += 2 * width;
        }
    }

    /// Returns the dot at a position, counted from the top left.
    fn dot(&self, (x, y): (f64, f64)) -> (i32, i32) {
        let (right, bottom) = (f64::from(self.field.width) * 2.0 - 1.0, f64::from(self.field.height) * 4.0 - 1.0);
        // Rounding errors may lead out of the field.
        ((x.clamp(0.0, 1.0) * right).round() as i32, ((1.0 - y.clamp(0.0, 1.0)) * bottom).round() as i32)
    }

    fn set(&mut self, x: i32, y: i32) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if let Some(pattern) = self.patterns.get_mut(y / 4 * usize::from(self.field.width) + x / 2) {
            *pattern |= 1 << DOTS[x % 2][y % 4];
        }
    }
}

/// Returns the ASCII character closest to a braille pattern; other characters are ASCII already.
fn ascii(glyph: char) -> char {
    let Some(pattern) = u32::from(glyph).checked_sub(BRAILLE) else { return glyph };
    /// The mean row of the dots of a column, and how many there are.
    fn mean(pattern: u32, bits: [u8; 4]) -> Option<(f64, usize)> {
        let rows: Vec<f64> = (0..4).filter(|row| pattern >> bits[*row] & 1 == 1).map(|row| row as f64).collect();
        if rows.is_empty() { None } else { Some((rows.iter().sum::<f64>() / rows.len() as f64, rows.len())) }
    }
    match (mean(pattern, DOTS[0]), mean(pattern, DOTS[1])) {
        (None, None) => ' ',
        (Some((left, _)), Some((right, _))) if right - left >= 1.0 => '\\',
        (Some((left, _)), Some((right, _))) if left - right >= 1.0 => '/',
        (Some((_, 3..)), _) | (_, Some((_, 3..))) => '|',
        (Some((row, _)), _) | (_, Some((row, _))) if row < 1.0 => '\'',
        (Some((row, _)), _) | (_, Some((row, _))) if row < 2.5 => '-',
        _ => '.',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_keep_their_direction_in_ascii_and_other_symbols_are_unchanged() {
        for (braille, want) in [
            ('⠀', ' '),
            ('⡠', '/'),
            ('⠑', '\\'),
            ('⠉', '\''),
            ('⠒', '-'),
            ('⠤', '-'),
            ('⣀', '.'),
            ('⡇', '|'),
            ('⢸', '|'),
            ('⡀', '.'),
            ('+', '+'),
        ] {
            assert_eq!(ascii(braille), want, "{braille}");
        }
    }
}
