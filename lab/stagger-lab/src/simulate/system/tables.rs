use super::document::Document;
use super::metric::mean;
use stagger_report::metric::share;
use stagger_terminal::plot::Unit;

/// A table of figures: headings, and rows of texts. The first column is a name.
pub(super) struct Table {
    pub(super) title: &'static str,
    /// Each with whether it is dropped from a narrow table.
    pub(super) heads: Vec<(&'static str, bool)>,
    pub(super) rows: Vec<Vec<String>>,
}

/// Returns the tables of a document: edges and services.
pub(super) fn tables(document: &Document) -> [Table; 2] {
    [edges(document), services(document)]
}

fn edges(document: &Document) -> Table {
    let (runs, has_cache) =
        (&document.runs, document.runs.iter().any(|run| run.edges.iter().any(|edge| edge.cached > 0)));
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let rows = document.system.edges.iter().enumerate().map(|(nth, edge)| {
        let mut row = vec![
            format!("{} → {}", edge.from, edge.to),
            number(mean(runs, |run| run.edges[nth].attempts_per_request)),
            number(mean(runs, |run| run.edges[nth].attempts_per_request_during_fault)),
            edge.worst_attempts_per_request.map_or("no limit".to_owned(), |most| format!("{most}")),
            count(mean(runs, |run| run.edges[nth].timed_out as f64)),
        ];
        if has_cache {
            row.push(count(mean(runs, |run| run.edges[nth].cached as f64)));
        }
        row
    });
    let mut heads = vec![
        ("edge", false),
        ("attempts per request", false),
        ("during trigger", true),
        ("at most", true),
        ("timed out", true),
    ];
    if has_cache {
        heads.push(("from cache", true));
    }
    Table { title: "Edges", heads, rows: rows.collect() }
}

fn services(document: &Document) -> Table {
    let runs = &document.runs;
    let rows = document.system.services.iter().enumerate().map(|(nth, service)| {
        let rate = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
        vec![
            service.name.clone(),
            format!("{:.0}%", 100.0 * service.load / service.capacity),
            rate(mean(runs, |run| run.services[nth].goodput)),
            mean(runs, |run| run.services[nth].wasted_ratio).map_or("-".to_owned(), share),
            count(mean(runs, |run| f64::from(run.services[nth].peak))),
            count(mean(runs, |run| run.services[nth].refused as f64)),
            count(mean(runs, |run| run.services[nth].dropped as f64)),
        ]
    });
    let heads = vec![
        ("service", false),
        ("load", true),
        ("goodput per s", false),
        ("wasted work", false),
        ("longest queue", true),
        ("refused", true),
        ("dropped", true),
    ];
    Table { title: "Services", heads, rows: rows.collect() }
}

fn count(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| Unit::Count.label(value.round()))
}
