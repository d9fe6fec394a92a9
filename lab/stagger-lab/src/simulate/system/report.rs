use super::document::Document;
use super::frontier::map;
use super::tables::tables;
use super::words::{conclusions, describe, seeds};
use stagger_terminal::plot::{Cell, Column, RenderOptions, paragraph, sparkline, table};

/// The longest sparkline, in characters.
const SPARKLINE: usize = 60;

/// Returns the summary for a terminal.
pub(super) fn summary(document: &Document, options: RenderOptions) -> String {
    let mut out = paragraph(&describe(document), "  ", options);
    for one in tables(document) {
        let columns = one.heads.iter().enumerate().map(|(nth, (heading, is_optional))| {
            let column = if nth == 0 { Column::left(heading) } else { Column::right(heading) };
            if *is_optional { column.optional() } else { column }
        });
        let rows = one.rows.into_iter().map(|row| row.into_iter().map(Cell::from).collect::<Vec<_>>());
        out.push('\n');
        out.push_str(&table(&columns.collect::<Vec<_>>(), rows, options));
    }
    out.push('\n');
    out.push_str(&served(document, options));
    for text in conclusions(document).into_iter().chain([seeds(document)]) {
        out.push_str(&paragraph(&text, "  ", options));
    }
    if let Some(frontier) = &document.frontier {
        out.push('\n');
        out.push_str(&map(frontier, options));
    }
    options.glyphs.transliterate(&out).replace('→', options.glyphs.pick("→", "->"))
}

/// Returns the requests and those that were served over time, on one scale.
fn served(document: &Document, options: RenderOptions) -> String {
    let Some(run) = document.runs.first() else { return String::new() };
    let width = usize::from(options.columns).saturating_sub(12).clamp(10, SPARKLINE);
    let seconds = run.requests.len().max(1);
    let resampled = |counts: &[u64]| -> Vec<f64> {
        (0..width)
            .map(|nth| {
                let from = nth * seconds / width;
                let until = ((nth + 1) * seconds / width).max(from + 1);
                let part = counts.get(from..until.min(counts.len())).unwrap_or_default();
                part.iter().sum::<u64>() as f64 / (until - from) as f64
            })
            .collect()
    };
    let (requests, goodput) = (resampled(&run.requests), resampled(&run.goodput));
    // One scale for both: the largest of all is a cell of its own, which is not shown.
    let most = requests.iter().chain(&goodput).copied().fold(0.0, f64::max);
    let line = |name: &str, values: &[f64]| {
        let scaled: Vec<f64> = values.iter().copied().chain([most]).collect();
        let drawn: String = sparkline(&scaled, options.glyphs).chars().take(values.len()).collect();
        format!("{name:<10} {}\n", drawn.trim_end())
    };
    line("requests", &requests) + &line("served", &goodput)
}
