use anstyle::AnsiColor;

use super::axes::Axes;
use super::canvas::{BrailleLines, Canvas};
use crate::plot::figure::{Bar, Point, Series, Shape, Span, corners};
use crate::plot::text::Glyphs;

/// Columns added on both sides of a series with a single position, to make it visible.
const SINGLE_MARGIN: u16 = 2;

/// Draws one series into the field of `axes`.
pub(super) fn paint(series: &Series, axes: &Axes, canvas: &mut Canvas, glyphs: Glyphs) {
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
    let after = places.partition_point(|place| place.0 < x);
    match (after.checked_sub(1).and_then(|i| places.get(i)), places.get(after)) {
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
