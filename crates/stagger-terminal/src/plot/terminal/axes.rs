use super::canvas::{Canvas, Field};
use crate::plot::figure::{Figure, Point};
use crate::plot::scale::{Scale, Tick, ticks};
use crate::plot::text::Glyphs;

/// Minimum distance between ticks: rows on the vertical axis, columns on the horizontal one.
const ROWS_PER_TICK: u16 = 3;
const COLUMNS_PER_TICK: u16 = 6;

/// The layout of a figure in a character buffer.
#[derive(Debug)]
pub(super) struct Axes {
    pub(super) field: Field,
    x: Scale,
    y: Scale,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    x_label: String,
}

impl Axes {
    pub(super) fn new(figure: &Figure, columns: u16) -> Self {
        let (x, y) = figure.scales();
        let height = (columns / 5).clamp(10, 16);
        let y_ticks = ticks(y, figure.y.unit, usize::from(height / ROWS_PER_TICK));
        let widest = y_ticks.iter().map(|tick| width(&tick.label)).max();
        let gutter = widest.unwrap_or(0).max(width(&figure.x.label)).min(columns / 3);
        // A space and the axis itself separate the labels from the field.
        let left = gutter + 2;
        let field = Field { left, width: columns - left, height };
        let x_ticks = ticks(x, figure.x.unit, usize::from(field.width / COLUMNS_PER_TICK));
        let x_label = figure.x.label.clone();
        Self { field, x, y, x_ticks, y_ticks, x_label }
    }

    /// Returns the position of a point in the field: from (0, 0), bottom left, to (1, 1).
    pub(super) fn place(&self, point: Point) -> (f64, f64) {
        (self.x.position(point.x), self.y.position(point.y))
    }

    /// Returns the column of `position`, consistent with braille lines: two dots per column.
    pub(super) fn column(&self, position: f64) -> u16 {
        self.field.left + cell(position, self.field.width, 2)
    }

    /// Returns the row of `position`: four dots per row.
    pub(super) fn row(&self, position: f64) -> u16 {
        self.field.height - 1 - cell(position, self.field.height, 4)
    }

    pub(super) fn middle(&self, column: u16) -> f64 {
        let dots = f64::from(self.field.width) * 2.0 - 1.0;
        (f64::from(column - self.field.left) * 2.0 + 0.5) / dots
    }

    pub(super) fn paint(&self, canvas: &mut Canvas, glyphs: Glyphs) {
        let (vertical, horizontal, corner) = glyphs.pick(('│', '─', '└'), ('|', '-', '+'));
        let (y_mark, x_mark) = glyphs.pick(('┤', '┬'), ('+', '+'));
        let axis = self.field.left - 1;
        let base = self.field.height;
        for row in 0..base {
            canvas.set(axis, row, vertical, None);
        }
        for column in self.field.left..self.field.right() {
            canvas.set(column, base, horizontal, None);
        }
        canvas.set(axis, base, corner, None);
        for tick in &self.y_ticks {
            let row = self.row(tick.position);
            canvas.set(axis, row, y_mark, None);
            let start = (axis - 1).saturating_sub(width(&tick.label));
            canvas.write(start, row, &tick.label);
        }
        let labels = base + 1;
        let x_label: String = self.x_label.chars().take(usize::from(axis)).collect();
        canvas.write(0, labels, &x_label);
        let mut free = self.field.left;
        for tick in &self.x_ticks {
            let column = self.column(tick.position);
            canvas.set(column, base, x_mark, None);
            let length = width(&tick.label);
            let end = self.field.right();
            let start = column.saturating_sub(length / 2).max(self.field.left).min(end.saturating_sub(length));
            if start >= free {
                canvas.write(start, labels, &tick.label);
                free = start + length + 1;
            }
        }
    }
}

/// Returns the cell that contains `position`, from the low end, with `dots` dots per cell.
fn cell(position: f64, cells: u16, dots: u16) -> u16 {
    let last = f64::from(cells) * f64::from(dots) - 1.0;
    // The position is between 0 and 1, so the dot number fits.
    (position.clamp(0.0, 1.0) * last).round() as u16 / dots
}

/// Returns the width of a label; all its characters take one column.
fn width(label: &str) -> u16 {
    u16::try_from(label.chars().count()).unwrap_or(u16::MAX)
}
