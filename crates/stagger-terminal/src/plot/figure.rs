use anstyle::AnsiColor;

use super::scale::{Scale, Spacing, Unit};

/// A plot, independent of how it is rendered.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub title: String,
    /// Text alternative with the numbers, for readers that cannot see the plot.
    pub description: String,
    pub x: Axis,
    pub y: Axis,
    /// Drawn in this order, later series on top.
    pub series: Vec<Series>,
}

impl Figure {
    /// Returns the horizontal and the vertical scale that fit all series.
    pub fn scales(&self) -> (Scale, Scale) {
        let points: Vec<Point> = self.series.iter().flat_map(|series| series.shape.extent()).collect();
        let fit = |axis: &Axis, of: fn(&Point) -> f64| {
            Scale::fit(axis.spacing, points.iter().map(of).chain(axis.including.iter().copied()))
        };
        (fit(&self.x, |point| point.x), fit(&self.y, |point| point.y))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub label: String,
    pub unit: Unit,
    spacing: Spacing,
    including: Vec<f64>,
}

impl Axis {
    /// Creates a linear axis that fits the values of its series.
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self { label: label.into(), unit, spacing: Spacing::Linear, including: Vec::new() }
    }

    /// Extends the axis to include `value`.
    pub fn including(mut self, value: f64) -> Self {
        self.including.push(value);
        self
    }

    pub fn spaced(self, spacing: Spacing) -> Self {
        Self { spacing, ..self }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend; `None` to leave it out.
    pub name: Option<String>,
    pub shape: Shape,
    pub hue: Hue,
    pub weight: Weight,
}

impl Series {
    pub fn strong(name: impl Into<String>, hue: Hue, shape: Shape) -> Self {
        Self { name: Some(name.into()), shape, hue, weight: Weight::Strong }
    }

    pub fn light(name: impl Into<String>, hue: Hue, shape: Shape) -> Self {
        Self { weight: Weight::Light, ..Self::strong(name, hue, shape) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    Strong,
    Light,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    Line(Vec<Point>),
    /// Step function: constant from each point to the next.
    Steps(Vec<Point>),
    Points(Vec<Point>),
    Band(Vec<Span>),
    /// Bars from zero.
    Bars(Vec<Bar>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

/// The extent of a band at one position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    pub x: f64,
    pub low: f64,
    pub high: f64,
}

/// A bar over an interval of the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    pub left: f64,
    pub right: f64,
    pub height: f64,
}

impl Shape {
    /// Returns points that have the same extent in both directions as the shape.
    fn extent(&self) -> Vec<Point> {
        match self {
            Self::Line(points) | Self::Steps(points) | Self::Points(points) => points.clone(),
            Self::Band(spans) => {
                spans.iter().flat_map(|&Span { x, low, high }| [low, high].map(|y| Point { x, y })).collect()
            }
            Self::Bars(bars) => {
                let ends = |bar: &Bar| [Point { x: bar.left, y: 0.0 }, Point { x: bar.right, y: bar.height }];
                bars.iter().flat_map(ends).collect()
            }
        }
    }
}

/// Returns the corners of the step function through `points`.
pub fn corners(points: &[Point]) -> Vec<Point> {
    let mut out: Vec<Point> = Vec::with_capacity(points.len() * 2);
    for point in points {
        if let Some(last) = out.last() {
            out.push(Point { x: point.x, y: last.y });
        }
        out.push(*point);
    }
    out
}

/// The series of one name, which share an entry in the legend.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry<'a> {
    pub name: &'a str,
    pub series: Vec<&'a Series>,
}

/// Returns the legend entries of the named series, in order.
pub(super) fn legend(series: &[Series]) -> Vec<Entry<'_>> {
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

/// The color of a series, with a dash pattern and a mark that distinguish it without color.
///
/// The colors are those of Okabe and Ito, "Color Universal Design", 2008, which are distinguishable with any kind of
/// color vision. If a color has too little contrast on a page, its lightness is changed and its hue kept. Yellow is
/// left out: no lightness has enough contrast on white.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hue {
    pub class: &'static str,
    pub on_light: &'static str,
    pub on_dark: &'static str,
    /// The color in a terminal, from the user's palette; `None` for that of text.
    pub in_terminal: Option<AnsiColor>,
    /// The dash pattern of lines, as lengths of dashes and gaps; empty for a solid line.
    pub dash: &'static str,
    /// The letter that marks points in a terminal.
    pub mark: char,
}

impl Hue {
    pub const INK: Self = Self::new("ink", ["#1c2128", "#e6edf3"], None, "", 'o');
    pub const VERMILION: Self = Self::new("vermilion", ["#d55e00", "#f07f2e"], Some(AnsiColor::Red), "7 3", 'b');
    pub const SKY: Self = Self::new("sky", ["#3a9fd6", "#8fd0f5"], Some(AnsiColor::Cyan), "12 4", 'f');

    /// All hues, in the order in which they are assigned to series.
    pub const ALL: [Self; 7] = [
        Self::INK,
        Self::new("blue", ["#0072b2", "#4aa8e0"], Some(AnsiColor::BrightBlue), "", 'a'),
        Self::VERMILION,
        Self::new("green", ["#009e73", "#1fbf8f"], Some(AnsiColor::Green), "2 3", 'c'),
        Self::new("purple", ["#b8558f", "#de94bf"], Some(AnsiColor::Magenta), "9 3 2 3", 'd'),
        Self::new("orange", ["#c98500", "#e69f00"], Some(AnsiColor::Yellow), "4 2", 'e'),
        Self::SKY,
    ];

    const fn new(
        class: &'static str,
        [on_light, on_dark]: [&'static str; 2],
        in_terminal: Option<AnsiColor>,
        dash: &'static str,
        mark: char,
    ) -> Self {
        Self { class, on_light, on_dark, in_terminal, dash, mark }
    }

    /// Returns the hue with solid lines.
    pub fn solid(self) -> Self {
        Self { dash: "", ..self }
    }

    /// Returns the hue of series `n`, from 0; hues repeat after six.
    pub fn nth(n: usize) -> Self {
        let colored = &Self::ALL[1..];
        colored[n % colored.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::samples::band;

    #[test]
    fn bars_begin_at_zero() {
        let bar = Bar { left: 0.0, right: 1.0, height: 3.0 };
        let series = vec![Series::light("bars", Hue::SKY, Shape::Bars(vec![bar]))];
        let (_, y) = Figure { series, ..band(&[]) }.scales();
        assert_eq!((y.low, y.high), (0.0, 3.0));
    }

    #[test]
    fn steps_are_constant_until_the_next_point() {
        let at = |(x, y)| Point { x, y };
        let got = corners(&[(0.0, 1.0), (2.0, 5.0), (3.0, 4.0)].map(at));
        assert_eq!(got, [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0), (3.0, 5.0), (3.0, 4.0)].map(at));
    }
}
