//! Pictures of a system: its graph, its course over time, and the map of `--frontier`.

use stagger_report::report::{Chart, share};
use stagger_report::storm::downsample;
use stagger_terminal::plot::svg::{Graph, GraphLink, GraphNode, HeatMap};
use stagger_terminal::plot::{Axis, Figure, Hue, RenderOptions, Series, Shape, Span, Unit, paragraph};

use super::document::Document;
use super::find::FrontierEntry;
use super::report::mean;

/// Maximum number of intervals of a line.
const RESOLUTION: usize = 500;

/// Maximum number of lines in one chart.
const MAX_LINES: usize = 6;

/// Number of rows of the table beside a chart.
const ROWS: usize = 24;

/// Returns the picture of the system: services with their wasted work, edges with their attempts per request.
pub(super) fn graph(document: &Document) -> Graph {
    let (system, runs) = (&document.system, &document.runs);
    let users = GraphNode {
        layer: 0,
        title: "users".to_owned(),
        lines: vec![format!("{} requests/s", Unit::Count.label(system.rate))],
        is_marked: false,
    };
    let services = system.services.iter().enumerate().map(|(nth, service)| {
        let wasted = mean(runs, |run| run.services[nth].wasted_ratio).unwrap_or(0.0);
        let peak = mean(runs, |run| f64::from(run.services[nth].peak)).unwrap_or(0.0);
        GraphNode {
            layer: service.depth,
            title: service.name.clone(),
            lines: vec![
                format!(
                    "load {:.0}% of {}/s",
                    100.0 * service.load / service.capacity,
                    Unit::Count.label(service.capacity.round())
                ),
                format!("{} wasted", share(wasted)),
                format!("queue up to {}", Unit::Count.label(peak.round())),
            ],
            is_marked: wasted >= 0.5,
        }
    });
    let place = |name: &str| system.services.iter().position(|service| service.name == name).map_or(0, |nth| nth + 1);
    let links = system.edges.iter().enumerate().map(|(nth, edge)| {
        let attempts = mean(runs, |run| run.edges[nth].attempts_per_request).unwrap_or(0.0);
        GraphLink { from: place(&edge.from), to: place(&edge.to), label: format!("×{attempts:.2}"), weight: attempts }
    });
    Graph {
        title: "Attempts per request".to_owned(),
        description: format!("The services of {} and the attempts per request on each edge.", document.file),
        nodes: [users].into_iter().chain(services).collect(),
        links: links.collect(),
    }
}

/// Returns the charts of the first run over time.
pub(super) fn charts(document: &Document) -> Vec<Chart> {
    let Some(run) = document.runs.first() else { return Vec::new() };
    let floats = |counts: &[u64]| counts.iter().map(|&count| count as f64).collect::<Vec<_>>();
    let served = vec![("requests".to_owned(), floats(&run.requests)), ("served".to_owned(), floats(&run.goodput))];
    let edges = document.system.edges.iter().zip(&run.edges);
    let attempts =
        edges.map(|(edge, of)| (format!("{} to {}", edge.from, edge.to), floats(&of.attempts))).collect::<Vec<_>>();
    let services = document.system.services.iter().zip(&run.services);
    let queues =
        services.map(|(service, of)| (service.name.clone(), of.occupancy.iter().map(|&n| f64::from(n)).collect()));
    vec![
        chart(document, "served", "Requests and those served", "requests per second", &served),
        chart(document, "attempts", "Attempts on each edge", "attempts per second", &attempts),
        chart(
            document,
            "queues",
            "Attempts at each service",
            "attempts, waiting or in service",
            &queues.collect::<Vec<_>>(),
        ),
    ]
}

fn chart(
    document: &Document,
    slug: &'static str,
    title: &'static str,
    axis: &str,
    lines: &[(String, Vec<f64>)],
) -> Chart {
    let system = &document.system;
    let end = document.runs.first().map_or(system.horizon_s, |run| run.horizon_s);
    let shown = &lines[..lines.len().min(MAX_LINES)];
    let most = shown.iter().flat_map(|(_, values)| values).copied().fold(1.0, f64::max);
    let mut series = Vec::new();
    if system.fault_end_s > system.fault_start_s {
        let ends = [system.fault_start_s, system.fault_end_s].map(|x| Span { x, low: 0.0, high: most });
        series.push(Series::light("trigger", Hue::INK, Shape::Band(ends.to_vec())));
    }
    series.extend(shown.iter().enumerate().map(|(nth, (name, values))| {
        Series::strong(name.clone(), Hue::nth(nth), Shape::Steps(downsample(values, 1.0, end, RESOLUTION)))
    }));
    let figure = Figure {
        title: title.to_owned(),
        description: format!("{title} over time; at most {} {axis}.", Unit::Count.label(most)),
        x: Axis::new("time", Unit::Seconds).including(0.0).including(end),
        y: Axis::new(axis, Unit::Count).including(0.0).including(most),
        series,
    };
    let step = (end / ROWS as f64).max(1.0);
    let rows = (0..ROWS).map(|nth| {
        let second = (nth as f64 * step) as usize;
        let values = lines.iter().map(|(_, values)| Unit::Count.label(values.get(second).copied().unwrap_or(0.0)));
        [Unit::Seconds.label(second as f64)].into_iter().chain(values).collect()
    });
    let caption = match (lines.len() > MAX_LINES, &document.runs[..]) {
        (true, _) => format!("Of one run. The first {MAX_LINES} are drawn; the table has all."),
        (false, [_]) => String::new(),
        (false, _) => "Of the first run.".to_owned(),
    };
    Chart {
        slug,
        title,
        caption,
        figures: vec![figure],
        logarithmic: Vec::new(),
        heads: ["at".to_owned()].into_iter().chain(lines.iter().map(|(name, _)| name.clone())).collect(),
        rows: rows.collect(),
    }
}

/// Returns the map for a terminal: a row for each value of the second number, the largest on top.
pub(super) fn map(entry: &FrontierEntry, options: RenderOptions) -> String {
    let [across, up] = &entry.labels;
    let gutter = up.iter().map(String::len).max().unwrap_or(0);
    let width = if usize::from(options.columns) > gutter + 2 + 2 * across.len() { 2 } else { 1 };
    let mut out = paragraph(&caption(entry), "  ", options) + "\n";
    out.push_str(&format!("{}\n", entry.up));
    let [none, some, all] = options.glyphs.pick(['·', '▒', '█'], ['.', '+', '#']);
    for ((label, down), open) in up.iter().zip(&entry.down).zip(&entry.not_decided).rev() {
        let glyph = |(down, open): (&f64, &f64)| {
            if *open > 0.0 && *down + *open >= 1.0 && *down < 1.0 {
                '?'
            } else if *down <= 0.0 {
                none
            } else if *down >= 1.0 {
                all
            } else {
                some
            }
        };
        let cells: String = down.iter().zip(open).flat_map(|cell| core::iter::repeat_n(glyph(cell), width)).collect();
        out.push_str(&format!("{label:>gutter$}  {cells}\n"));
    }
    let (first, last) = (across.first().cloned().unwrap_or_default(), across.last().cloned().unwrap_or_default());
    let room = (width * across.len()).saturating_sub(first.len());
    out.push_str(&format!("{:gutter$}  {first}{last:>room$}\n", ""));
    let legend =
        format!("{none} is up at the end with every seed, {some} with some of {}, {all} with none", entry.seeds);
    out += &paragraph(&legend, "  ", options);
    if let Some(sentence) = entry.sentence() {
        out += &paragraph(&sentence, "  ", options);
    }
    out
}

/// Says what is in the map.
pub(super) fn caption(entry: &FrontierEntry) -> String {
    format!("What the system survives: {} across, {} up", entry.across, entry.up)
}

/// Returns the picture of the map.
pub(super) fn picture(entry: &FrontierEntry) -> HeatMap {
    let [across, up] = entry.labels.clone();
    let cells: Vec<_> = entry.down.iter().flatten().collect();
    let down = cells.iter().filter(|share| ***share >= 0.5).count();
    HeatMap {
        title: caption(entry),
        description: format!("The system stays down in {down} of {} cells.", cells.len()),
        axes: [entry.across.clone(), entry.up.clone()],
        across,
        up,
        cells: entry.down.clone(),
        legend: ["recovers".to_owned(), "stays down".to_owned()],
    }
}
