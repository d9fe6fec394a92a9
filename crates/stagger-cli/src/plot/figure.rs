use super::palette::Hue;
use super::scale::{Scale, Spacing};
use super::ticks::{Tick, ticks};
use super::unit::Unit;

/// A picture of figures: what is drawn, not how.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    /// What the picture shows.
    pub(crate) title: String,
    /// The same in a sentence, with its numbers, for those who do not see the picture.
    pub(crate) description: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Drawn in this order, later ones on top.
    pub(crate) series: Vec<Series>,
}

impl Figure {
    /// The scales on which every series of the figure lies.
    pub(crate) fn scales(&self) -> (Scale, Scale) {
        let shapes = || self.series.iter().map(|series| &series.shape);
        let fit = |axis: &Axis, values: Vec<f64>| {
            Scale::fit(axis.spacing, values.into_iter().chain(axis.including.iter().copied()))
        };
        let xs = shapes().flat_map(Shape::xs).collect();
        let ys = shapes().flat_map(Shape::ys).collect();
        (fit(&self.x, xs), fit(&self.y, ys))
    }
}

/// One of the two directions of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    pub(crate) label: String,
    unit: Unit,
    spacing: Spacing,
    including: Vec<f64>,
}

impl Axis {
    /// An axis that shows the stretch its series need.
    pub(crate) fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, spacing: Spacing::Linear, including: Vec::new() }
    }

    /// The same, and `value` is to be seen on it too.
    pub(crate) fn including(mut self, value: f64) -> Self {
        self.including.push(value);
        self
    }

    /// The same, with this spacing.
    pub(crate) fn spaced(self, spacing: Spacing) -> Self {
        Self { spacing, ..self }
    }

    pub(crate) fn unit(&self) -> Unit {
        self.unit
    }

    /// At most `most` ticks for the scale that the figure gave this axis.
    pub(crate) fn ticks(&self, scale: Scale, most: usize) -> Vec<Tick> {
        ticks(scale, self.unit, most)
    }
}

/// One set of figures in a picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    /// Its name in the legend; without one it is not named there.
    pub(crate) name: Option<String>,
    pub(crate) shape: Shape,
    pub(crate) hue: Hue,
    pub(crate) weight: Weight,
}

/// How much a series is to be noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It is what the picture is about.
    Strong,
    /// It stands beside others.
    Light,
}

/// What is drawn for a series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// From point to point.
    Line(Vec<Point>),
    /// Level from each point to the next, where it jumps.
    Steps(Vec<Point>),
    /// The points alone.
    Points(Vec<Point>),
    /// All between two lines.
    Band(Vec<Span>),
    /// From zero up.
    Bars(Vec<Bar>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// A band's extent at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    pub(crate) x: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// A bar over a stretch of the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bar {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) height: f64,
}

impl Shape {
    fn xs(&self) -> Vec<f64> {
        match self {
            Self::Line(points) | Self::Steps(points) | Self::Points(points) => {
                points.iter().map(|point| point.x).collect()
            }
            Self::Band(spans) => spans.iter().map(|span| span.x).collect(),
            Self::Bars(bars) => bars.iter().flat_map(|bar| [bar.left, bar.right]).collect(),
        }
    }

    fn ys(&self) -> Vec<f64> {
        match self {
            Self::Line(points) | Self::Steps(points) | Self::Points(points) => {
                points.iter().map(|point| point.y).collect()
            }
            Self::Band(spans) => spans.iter().flat_map(|span| [span.low, span.high]).collect(),
            Self::Bars(bars) => bars.iter().flat_map(|bar| [0.0, bar.height]).collect(),
        }
    }
}

/// The corners of the line that goes level from each point to the next and jumps there.
pub(crate) fn corners(points: &[Point]) -> Vec<Point> {
    let mut out: Vec<Point> = Vec::with_capacity(points.len() * 2);
    for point in points {
        if let Some(last) = out.last() {
            out.push(Point { x: point.x, y: last.y });
        }
        out.push(*point);
    }
    out
}

/// Series of one name, which share their place in the legend.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) series: Vec<&'a Series>,
}

/// The named series, in their order.
pub(crate) fn legend(series: &[Series]) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for one in series {
        let Some(name) = one.name.as_deref() else {
            continue;
        };
        match entries.iter_mut().find(|entry| entry.name == name) {
            Some(entry) => entry.series.push(one),
            None => entries.push(Entry { name, series: vec![one] }),
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_stay_level_until_the_next_point_and_jump_there() {
        let at = |(x, y)| Point { x, y };
        let got = corners(&[(0.0, 1.0), (2.0, 5.0), (3.0, 4.0)].map(at));
        assert_eq!(got, [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0), (3.0, 5.0), (3.0, 4.0)].map(at));
    }
}
