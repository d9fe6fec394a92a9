//! The charts of an outage.

use stagger_report::report::Chart;
use stagger_report::storm::downsample;
use stagger_terminal::plot::{Axis, Figure, Hue, Series, Shape, Span, Unit};

use super::document::{Document, Figures, PolicyEntry};

/// The width of a bin of the series, in seconds.
const BIN_S: f64 = 0.1;

/// Maximum number of intervals of a line.
const RESOLUTION: usize = 500;

/// Number of rows of the table beside a chart.
const ROWS: usize = 24;

/// What is counted over time.
type Counted = (&'static str, &'static str, fn(&Figures) -> &[u32]);

/// Returns the charts: attempts and served requests over time, measured over simulated, one figure per policy.
pub(super) fn charts(document: &Document) -> Vec<Chart> {
    let counted: [Counted; 2] = [
        ("attempts", "Attempts over time", |figures| &figures.attempts),
        ("served", "Requests served over time", |figures| &figures.served),
    ];
    counted.into_iter().map(|counted| chart(document, counted)).collect()
}

fn chart(document: &Document, (slug, title, of): Counted) -> Chart {
    let values = |figures: &Figures| of(figures).iter().map(|&count| f64::from(count)).collect::<Vec<_>>();
    let both = || document.policies.iter().flat_map(|policy| [&policy.measured, &policy.simulated]);
    let most = both().flat_map(values).fold(1.0, f64::max);
    let width = document.scenario.horizon_s / ROWS as f64;
    let row = |nth: usize| {
        let from = nth as f64 * width;
        let bin = (from / BIN_S) as usize;
        let count = |figures: &Figures| Unit::Count.label(of(figures).get(bin).copied().unwrap_or(0).into());
        [Unit::Seconds.label((from * 10.0).floor() / 10.0)].into_iter().chain(both().map(count)).collect()
    };
    let heads = document
        .policies
        .iter()
        .flat_map(|policy| ["measured", "simulated"].map(|kind| format!("{}, {kind}", policy.name)));
    Chart {
        slug,
        title,
        caption: format!("{title}, per 100 ms. All figures use the same scale."),
        figures: document.policies.iter().map(|policy| figure(document, policy, slug, of, most)).collect(),
        logarithmic: Vec::new(),
        heads: ["at".to_owned()].into_iter().chain(heads).collect(),
        rows: (0..ROWS).map(row).collect(),
    }
}

fn figure(document: &Document, policy: &PolicyEntry, what: &str, of: fn(&Figures) -> &[u32], most: f64) -> Figure {
    let scenario = &document.scenario;
    let steps = |figures: &Figures| {
        let mut values: Vec<f64> = of(figures).iter().map(|&count| f64::from(count)).collect();
        // The series ends with its last event.
        values.resize(values.len().max((scenario.horizon_s / BIN_S).ceil() as usize), 0.0);
        Shape::Steps(downsample(&values, BIN_S, scenario.horizon_s, RESOLUTION))
    };
    let ends = [scenario.fault_start_s, scenario.fault_end_s].map(|x| Span { x, low: 0.0, high: most });
    let total = |figures: &Figures| of(figures).iter().map(|&count| u64::from(count)).sum::<u64>();
    Figure {
        title: policy.name.clone(),
        description: format!(
            "{what} of {} over time: {} measured, {} simulated.",
            policy.name,
            total(&policy.measured),
            total(&policy.simulated)
        ),
        x: Axis::new("time", Unit::Seconds).including(0.0).including(scenario.horizon_s),
        y: Axis::new(format!("{what} in 100ms"), Unit::Count).including(0.0).including(most),
        series: vec![
            Series::light("fault", Hue::INK, Shape::Band(ends.to_vec())),
            Series::strong("simulated", Hue::nth(1), steps(&policy.simulated)),
            Series::strong("measured", Hue::nth(0), steps(&policy.measured)),
        ],
    }
}
