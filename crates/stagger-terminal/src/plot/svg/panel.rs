use super::shapes::{self, Field};
use super::xml::Element;
use crate::plot::figure::{Entry, Figure, Series, legend};
use crate::plot::scale::{ticks, zoomed_ticks};

pub(super) const WIDTH: f64 = 760.0;
/// The space around and between its parts.
pub(super) const MARGIN: f64 = 20.0;

/// The size of a panel, and how many labels its axes have at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) width: f64,
    field_height: f64,
    ticks_up: usize,
    ticks_across: usize,
}

impl Size {
    /// The size of a report.
    pub(super) const USUAL: Self = Self { width: WIDTH, field_height: 250.0, ticks_up: 7, ticks_across: 12 };
    /// Readable in a column of 400 pixels.
    pub(super) const SMALL: Self = Self { width: 460.0, field_height: 150.0, ticks_up: 4, ticks_across: 6 };
    /// Readable on a phone, where a chart has 350 pixels.
    pub(super) const NARROW: Self = Self { width: 380.0, field_height: 160.0, ticks_up: 5, ticks_across: 4 };
}

/// Width of the labels of the vertical axis.
const GUTTER: f64 = 62.0;
/// Ticks of a zoomed axis. The space for each depends on where the part begins.
const ZOOMED_TICKS: usize = 8;
/// A script can show a sixteenth of the axis: lines have no more points.
const MAX_ZOOM: u32 = 4;

const HEADING: f64 = 18.0;
/// Height of the name of the vertical axis, above it.
const LABEL: f64 = 30.0;
const LEGEND_LINE: f64 = 19.0;
const SWATCH_GAP: f64 = 6.0;
const LEGEND_GAP: f64 = 16.0;
/// Approximate width of a letter, generous because fonts differ.
const LETTER: f64 = 6.8;

/// What a panel has beside its field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    pub(super) heading: bool,
    pub(super) legend: bool,
}

impl Parts {
    pub(super) const ALL: Self = Self { heading: true, legend: true };
}

/// Renders a figure with its top at `y`.
pub(super) fn panel(figure: &Figure, y: f64, size: Size, parts: Parts) -> (Element, Field) {
    let (x_scale, y_scale) = figure.scales();
    let own = if parts.legend { &*figure.series } else { &[] };
    let below = if parts.heading { y + HEADING } else { y };
    let (key, key_height) = key(own, below, size.width);
    let top = below + key_height + LABEL;
    let (left, right, bottom) = (MARGIN + GUTTER, size.width - MARGIN, top + size.field_height);
    let field = Field { left, right, top, bottom, x: x_scale, y: y_scale };
    let heading = Element::new("text").set("class", "heading").px("x", MARGIN).px("y", y + 12.0).text(&figure.title);
    let shapes: Vec<Element> = figure.series.iter().flat_map(|series| shapes::series(series, &field)).collect();
    let group = Element::new("g")
        .set("class", "panel")
        .children(if parts.heading { core::slice::from_ref(&heading) } else { &[] })
        .children(&key)
        .children(&axes(figure, &field, size))
        .child(&Element::new("g").set("class", "series").children(&shapes));
    (group, field)
}

/// Adds what a script needs to zoom the horizontal axis: the field, and the ticks for each zoom level, with their
/// places and labels.
pub(super) fn zoomable(panel: Element, figure: &Figure, field: &Field) -> Element {
    let level = |zoom| {
        let ticks = zoomed_ticks(field.x, figure.x.unit, ZOOMED_TICKS, zoom).into_iter();
        let ticks = ticks.map(|tick| format!("{:.2} {}", field.across(tick.position), tick.label));
        ticks.collect::<Vec<_>>().join("|")
    };
    panel
        .set("data-field", format!("{} {} {} {}", field.left, field.top, field.right, field.bottom))
        .set("data-ticks", (0..=MAX_ZOOM).map(level).collect::<Vec<_>>().join(";"))
}

fn axes(figure: &Figure, field: &Field, size: Size) -> Vec<Element> {
    let mut out = Vec::new();
    let text = |anchor: &str, x: f64, y: f64| {
        Element::new("text").set("class", "quiet").set("text-anchor", anchor).px("x", x).px("y", y)
    };
    for tick in ticks(field.y, figure.y.unit, size.ticks_up) {
        let y = field.up(tick.position);
        out.push(line("rule", (field.left, y), (field.right, y)));
        out.push(text("end", field.left - 8.0, y + 4.0).text(&tick.label));
    }
    let mut across = Element::new("g").set("class", "ticks");
    for tick in ticks(field.x, figure.x.unit, size.ticks_across) {
        let x = field.across(tick.position);
        across = across
            .child(&line("axis", (x, field.bottom), (x, field.bottom + 5.0)))
            .child(&text("middle", x, field.bottom + 18.0).text(&tick.label));
    }
    out.push(across);
    out.push(line("axis", (field.left, field.bottom), (field.right, field.bottom)));
    out.push(text("end", field.right, field.bottom + 34.0).text(&figure.x.label));
    out.push(text("start", MARGIN, field.top - 12.0).text(&figure.y.label));
    out
}

fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> Element {
    Element::new("line").set("class", class).px("x1", from.0).px("y1", from.1).px("x2", to.0).px("y2", to.1)
}

/// Renders the legend in as many lines as needed, and returns its height.
pub(super) fn key(series: &[Series], top: f64, page_width: f64) -> (Vec<Element>, f64) {
    let mut out = Vec::new();
    let (mut x, mut y) = (MARGIN, top + LEGEND_LINE - 5.0);
    let entries = legend(series);
    for Entry { name, series } in &entries {
        let widths = series.iter().map(|one| shapes::swatch_width(one) + SWATCH_GAP);
        let swatches: f64 = widths.clone().sum();
        let length = swatches + name.chars().count() as f64 * LETTER;
        if x > MARGIN && x + length > page_width - MARGIN {
            (x, y) = (MARGIN, y + LEGEND_LINE);
        }
        let mut start = x;
        for (one, width) in series.iter().zip(widths) {
            out.push(shapes::swatch(one, (start, y - 4.0)));
            start += width;
        }
        out.push(Element::new("text").px("x", x + swatches).px("y", y).text(name));
        x += length + LEGEND_GAP;
    }
    let height = if entries.is_empty() { 0.0 } else { y + 5.0 - top };
    (out, height)
}
