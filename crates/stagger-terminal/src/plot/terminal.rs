//! Renders figures as text: axes, series and a legend.

use anstyle::{AnsiColor, Style};

use super::canvas::{BrailleLines, Canvas, Field};
use crate::plot::figure::{Bar, Entry, Figure, Point, Series, Shape, Span, corners, legend};
use crate::plot::scale::{Scale, Tick, ticks};
use crate::plot::text::{Glyphs, RenderOptions};

/// Minimum width in columns; a narrower plot would be all axis.
const MIN_COLUMNS: u16 = 24;

/// Maximum width in columns; a wider plot shows no more detail.
const MAX_COLUMNS: u16 = 120;

/// Renders a figure as lines of at most `options.columns` characters: title, plot, legend.
pub fn paint(figure: &Figure, options: RenderOptions) -> String {
    let columns = options.columns.clamp(MIN_COLUMNS, MAX_COLUMNS);
    let axes = Axes::new(figure, columns);
    // Below the field are its axis and the labels.
    let mut canvas = Canvas::new(columns, axes.field.height + 2);
    axes.paint(&mut canvas, options.glyphs);
    for series in &figure.series {
        paint_series(series, &axes, &mut canvas, options.glyphs);
    }
    let mut out = format!("{}\n", figure.title);
    out.push_str(&canvas.lines(options));
    out.push_str(&legend_lines(&figure.series, axes.field.left, RenderOptions { columns, ..options }));
    out
}

/// Minimum distance between ticks: rows on the vertical axis, columns on the horizontal one.
const ROWS_PER_TICK: u16 = 3;
const COLUMNS_PER_TICK: u16 = 6;

/// The layout of a figure in a character buffer.
#[derive(Debug)]
struct Axes {
    field: Field,
    x: Scale,
    y: Scale,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    x_label: String,
}

impl Axes {
    fn new(figure: &Figure, columns: u16) -> Self {
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
    fn place(&self, point: Point) -> (f64, f64) {
        (self.x.position(point.x), self.y.position(point.y))
    }

    /// Returns the column of `position`, consistent with braille lines: two dots per column.
    fn column(&self, position: f64) -> u16 {
        self.field.left + cell(position, self.field.width, 2)
    }

    /// Returns the row of `position`: four dots per row.
    fn row(&self, position: f64) -> u16 {
        self.field.height - 1 - cell(position, self.field.height, 4)
    }

    fn middle(&self, column: u16) -> f64 {
        let dots = f64::from(self.field.width) * 2.0 - 1.0;
        (f64::from(column - self.field.left) * 2.0 + 0.5) / dots
    }

    fn paint(&self, canvas: &mut Canvas, glyphs: Glyphs) {
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

/// Columns added on both sides of a series with a single position, to make it visible.
const SINGLE_MARGIN: u16 = 2;

/// Draws one series into the field of `axes`.
fn paint_series(series: &Series, axes: &Axes, canvas: &mut Canvas, glyphs: Glyphs) {
    let color = series.hue.in_terminal;
    match &series.shape {
        Shape::Line(points) => line(points, color, axes, canvas),
        Shape::Steps(points) => line(&corners(points), color, axes, canvas),
        Shape::Points(points) => marks(points, series.hue.mark, color, axes, canvas),
        Shape::Band(spans) => band(spans, glyphs.pick('░', ':'), color, axes, canvas),
        Shape::Bars(bars) => vertical_bars(bars, glyphs, color, axes, canvas),
    }
}

fn line(points: &[Point], color: Option<AnsiColor>, axes: &Axes, canvas: &mut Canvas) {
    let mut places: Vec<(f64, f64)> = points.iter().map(|point| axes.place(*point)).collect();
    if let [(x, y)] = places[..] {
        let half = f64::from(SINGLE_MARGIN) / f64::from(axes.field.width);
        places = vec![((x - half).max(0.0), y), ((x + half).min(1.0), y)];
    }
    let mut lines = BrailleLines::new(axes.field);
    for pair in places.windows(2) {
        lines.line(pair[0], pair[1]);
    }
    canvas.draw(&lines, color);
}

fn marks(points: &[Point], mark: char, color: Option<AnsiColor>, axes: &Axes, canvas: &mut Canvas) {
    for point in points {
        let (x, y) = axes.place(*point);
        canvas.set(axes.column(x), axes.row(y), mark, color);
    }
}

fn band(spans: &[Span], fill: char, color: Option<AnsiColor>, axes: &Axes, canvas: &mut Canvas) {
    let edge = |span: &Span, y| axes.place(Point { x: span.x, y });
    let low: Vec<_> = spans.iter().map(|span| edge(span, span.low)).collect();
    let high: Vec<_> = spans.iter().map(|span| edge(span, span.high)).collect();
    let (Some(first), Some(last)) = (low.first(), low.last()) else {
        return;
    };
    let margin = if spans.len() == 1 { SINGLE_MARGIN } else { 0 };
    let field = axes.field;
    let from = axes.column(first.0).saturating_sub(margin).max(field.left);
    let to = (axes.column(last.0) + margin).min(field.right() - 1);
    for column in from..=to {
        let x = axes.middle(column);
        let (bottom, top) = (axes.row(interpolate(&low, x)), axes.row(interpolate(&high, x)));
        for row in top..=bottom {
            canvas.set(column, row, fill, color);
        }
    }
}

/// Interpolates the line through `places`, which are sorted, at `x`; constant beyond its ends.
fn interpolate(places: &[(f64, f64)], x: f64) -> f64 {
    let (before, after) = places.split_at(places.partition_point(|place| place.0 < x));
    match (before.last(), after.first()) {
        (Some(a), Some(b)) if b.0 > a.0 => a.1 + (b.1 - a.1) * (x - a.0) / (b.0 - a.0),
        (_, Some(place)) | (Some(place), None) => place.1,
        (None, None) => 0.0,
    }
}

fn vertical_bars(bars: &[Bar], glyphs: Glyphs, color: Option<AnsiColor>, axes: &Axes, canvas: &mut Canvas) {
    let levels = glyphs.levels();
    let steps = levels.len() - 1;
    let field = axes.field;
    for bar in bars {
        let (left, _) = axes.place(Point { x: bar.left, y: 0.0 });
        let (right, height) = axes.place(Point { x: bar.right, y: bar.height });
        let (first, last) = (axes.column(left), axes.column(right));
        // Neighbors share an edge; the column there belongs to the bar on the right. A gap is left if there is space.
        let end = if right < 1.0 { last.saturating_sub(1) } else { last };
        let end = if end > first + 1 { end - 1 } else { end.max(first) };
        let filled = (height * f64::from(field.height) * steps as f64).round() as usize;
        for up in 0..field.height {
            let part = filled.saturating_sub(usize::from(up) * steps).min(steps);
            for column in first..=end {
                if part > 0 {
                    canvas.set(column, field.height - 1 - up, levels[part], color);
                }
            }
        }
    }
}

const GAP: usize = 3;

/// Formats the legend with the sample and the name of each series, in as many lines as needed.
fn legend_lines(series: &[Series], indent: u16, options: RenderOptions) -> String {
    let indent = usize::from(indent);
    let mut out = String::new();
    let mut column = 0;
    for entry in legend(series) {
        let length = entry_width(&entry, options);
        if column > 0 && column + GAP + length <= usize::from(options.columns) {
            out.push_str(&" ".repeat(GAP));
            column += GAP + length;
        } else {
            if column > 0 {
                out.push('\n');
            }
            out.push_str(&" ".repeat(indent));
            column = indent + length;
        }
        out.push_str(&entry_text(&entry, options));
    }
    if column > 0 {
        out.push('\n');
    }
    out
}

fn entry_width(entry: &Entry<'_>, options: RenderOptions) -> usize {
    let swatches = entry.series.iter().map(|one| swatch(one, options).chars().count() + 1);
    swatches.sum::<usize>() + entry.name.chars().count()
}

fn entry_text(entry: &Entry<'_>, options: RenderOptions) -> String {
    let mut out = String::new();
    for one in &entry.series {
        let style = options.style(Style::new().fg_color(one.hue.in_terminal.map(Into::into)));
        out.push_str(&format!("{style}{}{style:#} ", swatch(one, options)));
    }
    out + entry.name
}

fn swatch(series: &Series, options: RenderOptions) -> String {
    match series.shape {
        Shape::Line(_) | Shape::Steps(_) => options.glyphs.pick("⠒⠒", "--").to_owned(),
        Shape::Points(_) => series.hue.mark.to_string(),
        Shape::Band(_) => options.glyphs.pick("░░", "::").to_owned(),
        Shape::Bars(_) => options.glyphs.pick("█", "#").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::figure::{Hue, Point};
    use crate::plot::samples::{band, everything};
    use crate::plot::scale::Spacing;
    use crate::plot::text::Glyphs;

    const PLAIN: RenderOptions = RenderOptions { columns: 40, glyphs: Glyphs::Unicode, color: false };

    #[test]
    fn a_plot_has_title_field_axis_and_legend() {
        let want = "\
Delay
   4s ┤                              ░░░
      │                          ░░░░░░░
      │                       ░░░░░░░░░░
      │                    ░░░░░░░░░░░░░
   2s ┤                ░░░░░░░░░░░░░░░░░
      │          ░░░░░░░░░░░░░░░░░░░░░░░
      │   ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
      │░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
      │░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
   0s ┤░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
      └┬───────────────┬───────────────┬
retry  1               2               3
       ░░ min to max
";
        let got = paint(&band(&[1.0, 2.0, 4.0]), PLAIN);
        assert_eq!(got, want, "got:\n{got}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_or_ends_in_spaces() {
        for spacing in [Spacing::Linear, Spacing::Log] {
            for columns in [24, 39, 40, 41, 80, 120] {
                for n in [1, 2, 7, 40] {
                    let picture = paint(&everything(n, spacing), RenderOptions { columns, ..PLAIN });
                    for line in picture.lines() {
                        assert!(line.chars().count() <= usize::from(columns), "{columns}: {line}");
                        assert_eq!(line, line.trim_end());
                    }
                }
            }
        }
    }

    #[test]
    fn the_width_of_a_plot_is_clamped() {
        let width = |columns| {
            let picture = paint(&everything(5, Spacing::Linear), RenderOptions { columns, ..PLAIN });
            picture.lines().map(|line| line.chars().count()).max()
        };
        assert_eq!(width(400), width(MAX_COLUMNS));
        assert_eq!(width(1), width(MIN_COLUMNS));
    }

    #[test]
    fn without_utf_8_a_plot_is_ascii() {
        let picture = paint(&everything(6, Spacing::Linear), RenderOptions { glyphs: Glyphs::Ascii, ..PLAIN });
        assert!(picture.is_ascii(), "{picture}");
        assert!(picture.contains(":::"), "{picture}");
    }

    #[test]
    fn escapes_are_used_only_for_color() {
        let figure = everything(6, Spacing::Linear);
        let plain = paint(&figure, PLAIN);
        let colored = paint(&figure, RenderOptions { color: true, ..PLAIN });
        assert!(!plain.contains('\u{1b}'));
        let mut stripped = String::new();
        for (i, part) in colored.split('\u{1b}').enumerate() {
            let text = if i == 0 { part } else { part.split_once('m').map_or(part, |(_, text)| text) };
            stripped.push_str(text);
        }
        assert_eq!(stripped, plain);
        for line in colored.lines() {
            let (escapes, resets) = (line.matches("\u{1b}[").count(), line.matches("\u{1b}[0m").count());
            assert_eq!(escapes, resets * 2, "{line:?}");
        }
        assert!(colored.contains("\u{1b}[35md\u{1b}[0m"), "{colored:?}");
    }

    #[test]
    fn a_series_with_one_position_is_wide_enough_to_see() {
        let mut figure = band(&[4.0]);
        let picture = paint(&figure, PLAIN);
        assert!(picture.lines().nth(2).is_some_and(|line| line.ends_with(" ░░░░░")), "{picture}");
        figure.series = everything(1, Spacing::Linear).series.split_off(2);
        figure.series.truncate(1);
        let picture = paint(&figure, PLAIN);
        let dots = picture.chars().filter(|c| ('\u{2801}'..='\u{28ff}').contains(c)).count();
        assert!(dots >= 4 + 2, "the line itself and its two in the legend: {picture}");
    }

    #[test]
    fn later_series_are_drawn_on_top() {
        let mut figure = band(&[1.0, 4.0, 9.0]);
        let points = everything(3, Spacing::Linear).series.remove(4);
        let mark = points.hue.mark;
        figure.series.insert(0, points);
        let field = |figure: &Figure| paint(figure, PLAIN).lines().take(11).collect::<String>();
        assert!(!field(&figure).contains(mark));
        figure.series.rotate_left(1);
        assert!(field(&figure).contains(mark));
    }

    fn legend_of(columns: u16) -> String {
        let at = vec![Point { x: 0.0, y: 0.0 }];
        let series = [
            Series::light("median", Hue::nth(0), Shape::Line(at.clone())),
            Series { name: None, ..Series::light("", Hue::nth(1), Shape::Line(at.clone())) },
            Series::light("clients", Hue::nth(1), Shape::Points(at.clone())),
            Series::light("clients", Hue::nth(2), Shape::Points(at)),
        ];
        legend_lines(&series, 2, RenderOptions { columns, glyphs: Glyphs::Ascii, color: false })
    }

    #[test]
    fn series_of_one_name_share_an_entry_and_unnamed_series_have_none() {
        assert_eq!(legend_of(80), "  -- median   b c clients\n");
    }

    #[test]
    fn entries_that_do_not_fit_wrap() {
        assert_eq!(legend_of(20), "  -- median\n  b c clients\n");
    }
}
