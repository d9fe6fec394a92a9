//! Figures for tests.

use super::figure::{Axis, Bar, Figure, Hue, Point, Series, Shape, Span};
use super::scale::{Spacing, Unit};

/// Returns a figure with every shape: band, bars, line, steps and points over `n` positions.
pub(super) fn everything(n: u32, spacing: Spacing) -> Figure {
    let top = |x: u32| f64::from(x * x);
    let along = |share: f64| (1..=n).map(move |x| Point { x: f64::from(x), y: top(x) * share }).collect();
    let band = (1..=n).map(|x| Span { x: f64::from(x), low: 0.0, high: top(x) });
    let bars = (1..=n).map(|x| Bar { left: f64::from(x) - 0.5, right: f64::from(x) + 0.5, height: top(x) / 4.0 });
    let shapes = [
        Shape::Band(band.collect()),
        Shape::Bars(bars.collect()),
        Shape::Line(along(0.5)),
        Shape::Steps(along(0.3)),
        Shape::Points(along(0.8)),
    ];
    let series =
        shapes.into_iter().enumerate().map(|(i, shape)| Series::light(format!("series {i}"), Hue::ALL[i], shape));
    Figure {
        title: "Everything".to_owned(),
        description: "Every shape.".to_owned(),
        x: Axis::new("retry", Unit::Count),
        y: Axis::new("delay", Unit::Seconds).spaced(spacing),
        series: series.collect(),
    }
}

/// Returns a figure with a band from zero to `tops`, one position each.
pub(super) fn band(tops: &[f64]) -> Figure {
    let spans = tops.iter().zip(1..).map(|(top, x)| Span { x: f64::from(x), low: 0.0, high: *top });
    Figure {
        title: "Delay".to_owned(),
        description: "A band.".to_owned(),
        x: Axis::new("retry", Unit::Count),
        y: Axis::new("delay", Unit::Seconds),
        series: vec![Series::light("min to max", Hue::SKY, Shape::Band(spans.collect()))],
    }
}
