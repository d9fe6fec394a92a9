use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use crate::plot::figure::{Figure, Point};
use crate::plot::render_options::Glyphs;
use crate::plot::scale::Scale;
use crate::plot::ticks::Tick;

/// Rows to each tick of the upright axis, and columns to each of the other, so that they do not
/// crowd.
const ROWS_PER_TICK: u16 = 3;
const COLUMNS_PER_TICK: u16 = 6;

/// Where the parts of a figure lie in a buffer of characters.
#[derive(Debug)]
pub(super) struct Axes {
    /// Where the series go.
    field: Rect,
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
        let y_ticks = figure.y.ticks(y, usize::from(height / ROWS_PER_TICK));
        let widest = y_ticks.iter().map(|tick| width(&tick.label)).max();
        let gutter = widest.unwrap_or(0).max(width(&figure.x.label)).min(columns / 3);
        // A space and the axis itself stand between the labels and the field.
        let left = gutter + 2;
        let field = Rect::new(left, 0, columns - left, height);
        let x_ticks = figure.x.ticks(x, usize::from(field.width / COLUMNS_PER_TICK));
        let x_label = figure.x.label.clone();
        Self { field, x, y, x_ticks, y_ticks, x_label }
    }

    /// Rows of the field, its axis and the labels below.
    pub(super) fn height(&self) -> u16 {
        self.field.height + 2
    }

    /// The first column of the field.
    pub(super) fn left(&self) -> u16 {
        self.field.left()
    }

    pub(super) fn field(&self) -> Rect {
        self.field
    }

    /// A point's place in the field: from (0, 0), bottom left, to (1, 1).
    pub(super) fn place(&self, point: Point) -> (f64, f64) {
        (self.x.position(point.x), self.y.position(point.y))
    }

    /// The column in which `position` lies, as a braille line would draw it there: two dots to a
    /// column.
    pub(super) fn column(&self, position: f64) -> u16 {
        self.field.left() + cell(position, self.field.width, 2)
    }

    /// The row in which `position` lies: four dots to a row.
    pub(super) fn row(&self, position: f64) -> u16 {
        self.field.bottom() - 1 - cell(position, self.field.height, 4)
    }

    /// The middle of a column of the field, as a position.
    pub(super) fn middle(&self, column: u16) -> f64 {
        let dots = f64::from(self.field.width) * 2.0 - 1.0;
        (f64::from(column - self.field.left()) * 2.0 + 0.5) / dots
    }

    pub(super) fn paint(&self, buffer: &mut Buffer, glyphs: Glyphs) {
        let (upright, level, corner) = glyphs.pick(("│", "─", "└"), ("|", "-", "+"));
        let (y_mark, x_mark) = glyphs.pick(("┤", "┬"), ("+", "+"));
        let axis = self.field.left() - 1;
        let base = self.field.bottom();
        for row in self.field.top()..base {
            buffer.set_string(axis, row, upright, Style::new());
        }
        for column in self.field.left()..self.field.right() {
            buffer.set_string(column, base, level, Style::new());
        }
        buffer.set_string(axis, base, corner, Style::new());
        for tick in &self.y_ticks {
            let row = self.row(tick.position);
            buffer.set_string(axis, row, y_mark, Style::new());
            let start = (axis - 1).saturating_sub(width(&tick.label));
            buffer.set_string(start, row, &tick.label, Style::new());
        }
        let labels = base + 1;
        buffer.set_stringn(0, labels, &self.x_label, usize::from(axis), Style::new());
        let mut free = self.field.left();
        for tick in &self.x_ticks {
            let column = self.column(tick.position);
            buffer.set_string(column, base, x_mark, Style::new());
            let length = width(&tick.label);
            let end = self.field.right();
            let start = column.saturating_sub(length / 2).max(self.field.left()).min(end.saturating_sub(length));
            if start >= free {
                buffer.set_string(start, labels, &tick.label, Style::new());
                free = start + length + 1;
            }
        }
    }
}

/// The cell, counted from the low end, that holds `position` when each is `dots` dots wide.
fn cell(position: f64, cells: u16, dots: u16) -> u16 {
    let last = f64::from(cells) * f64::from(dots) - 1.0;
    // The position lies between 0 and 1, so the dot is a small whole number.
    (position.clamp(0.0, 1.0) * last).round() as u16 / dots
}

/// The characters that a label takes: it is made of digits and Latin letters.
fn width(label: &str) -> u16 {
    u16::try_from(label.chars().count()).unwrap_or(u16::MAX)
}
