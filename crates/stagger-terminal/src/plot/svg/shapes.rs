use super::xml::{Element, Pixels};
use crate::plot::figure::{Bar, Point, Series, Shape, Span, Weight, corners};
use crate::plot::scale::Scale;

/// Height of the labels and name of the horizontal axis, below it.
const FOOT: f64 = 40.0;

/// The field of a figure in pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) x: Scale,
    pub(super) y: Scale,
}

impl Field {
    pub(super) fn place(&self, point: Point) -> (f64, f64) {
        (self.across(self.x.position(point.x)), self.up(self.y.position(point.y)))
    }

    /// Returns where the figure ends, below its horizontal axis.
    pub(super) fn end(&self) -> f64 {
        self.bottom + FOOT
    }

    pub(super) fn across(&self, position: f64) -> f64 {
        self.left + position * (self.right - self.left)
    }

    pub(super) fn up(&self, position: f64) -> f64 {
        self.bottom - position * (self.bottom - self.top)
    }
}

/// Half the width of a series with a single position, to make it visible.
const SINGLE_MARGIN: f64 = 12.0;

pub(super) fn series(series: &Series, field: &Field) -> Vec<Element> {
    let place = |points: &[Point]| -> Vec<(f64, f64)> { points.iter().map(|point| field.place(*point)).collect() };
    match &series.shape {
        Shape::Line(points) => vec![line(series, &place(points))],
        Shape::Steps(points) => vec![line(series, &place(&corners(points)))],
        Shape::Points(points) => place(points).into_iter().map(|at| dot(series, at)).collect(),
        Shape::Band(spans) => vec![band(series, spans, field)],
        Shape::Bars(bars) => bars.iter().map(|one| bar(series, one, field)).collect(),
    }
}

/// Returns the width of a series' sample in the legend.
pub(super) fn swatch_width(series: &Series) -> f64 {
    match series.shape {
        Shape::Points(_) => 6.0,
        _ => 24.0,
    }
}

/// Renders a series' sample for the legend, vertically centered on `at`.
pub(super) fn swatch(series: &Series, at: (f64, f64)) -> Element {
    let ((x, y), width) = (at, swatch_width(series));
    match series.shape {
        Shape::Line(_) | Shape::Steps(_) => line(series, &[(x, y), (x + width, y)]),
        Shape::Points(_) => dot(series, (x + width / 2.0, y)),
        Shape::Band(_) | Shape::Bars(_) => {
            let class = if matches!(series.shape, Shape::Band(_)) { "band" } else { "bar" };
            rectangle(series, class, (x, y - 5.0), (width, 10.0))
        }
    }
}

fn line(series: &Series, places: &[(f64, f64)]) -> Element {
    let dash;
    let places = match places {
        [(x, y)] => {
            dash = [(x - SINGLE_MARGIN, *y), (x + SINGLE_MARGIN, *y)];
            &dash
        }
        places => places,
    };
    let width = match series.weight {
        Weight::Strong => 2.5,
        Weight::Light => 1.4,
    };
    let element = Element::new("polyline").set("class", format!("{} line", series.hue.class)).px("stroke-width", width);
    let element = match series.hue.dash {
        "" => element,
        dash => element.set("stroke-dasharray", dash),
    };
    element.set("points", path(places))
}

fn path(places: &[(f64, f64)]) -> String {
    let pairs: Vec<String> = places.iter().map(|(x, y)| format!("{},{}", Pixels(*x), Pixels(*y))).collect();
    pairs.join(" ")
}

/// Renders a point: filled, or a ring if it has little weight.
fn dot(series: &Series, at: (f64, f64)) -> Element {
    let (class, radius) = match series.weight {
        Weight::Strong => (series.hue.class.to_owned(), 2.5),
        Weight::Light => (format!("{} line", series.hue.class), 4.0),
    };
    Element::new("circle").set("class", class).px("cx", at.0).px("cy", at.1).px("r", radius)
}

fn band(series: &Series, spans: &[Span], field: &Field) -> Element {
    let edge = |span: &Span, y| field.place(Point { x: span.x, y });
    let there = spans.iter().map(|span| edge(span, span.high));
    let back = spans.iter().rev().map(|span| edge(span, span.low));
    let mut outline: Vec<(f64, f64)> = there.chain(back).collect();
    if let [high, low] = outline[..] {
        outline = vec![
            (high.0 - SINGLE_MARGIN, high.1),
            (high.0 + SINGLE_MARGIN, high.1),
            (low.0 + SINGLE_MARGIN, low.1),
            (low.0 - SINGLE_MARGIN, low.1),
        ];
    }
    Element::new("polygon").set("class", format!("{} band", series.hue.class)).set("points", path(&outline))
}

fn bar(series: &Series, bar: &Bar, field: &Field) -> Element {
    let (left, base) = field.place(Point { x: bar.left, y: 0.0 });
    let (right, top) = field.place(Point { x: bar.right, y: bar.height });
    // A gap of one pixel separates neighbors, unless the bar is too narrow.
    let width = if right - left > 3.0 { right - left - 1.0 } else { right - left };
    rectangle(series, "bar", (left, top), (width, base - top))
}

fn rectangle(series: &Series, class: &str, at: (f64, f64), size: (f64, f64)) -> Element {
    Element::new("rect")
        .set("class", format!("{} {class}", series.hue.class))
        .px("x", at.0)
        .px("y", at.1)
        .px("width", size.0)
        .px("height", size.1)
}
