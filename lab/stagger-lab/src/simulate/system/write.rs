//! Reports on a system: for the terminal, as a page, Markdown and CSV.

use std::path::Path;

use stagger_report::page::{Front, frame, headings, section};
use stagger_report::storm::{Format, Outputs, csv_text, markdown_text};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::{Target, command_line, to_json};
use stagger_terminal::plot::svg::{Page, document as svg_document, escaped};
use stagger_terminal::plot::{Cell, Column, RenderOptions, paragraph, sparkline, table};

use super::charts::{charts, graph, map, picture};
use super::document::Document;
use super::figures::{conclusions, describe, metrics, seeds, tables};

/// Writes all requested outputs.
pub(super) fn write(document: &Document, outputs: Outputs, options: RenderOptions) -> Result<(), CliError> {
    let json = to_json(document)?;
    if let Some(directory) = &outputs.svg {
        write_pictures(document, directory)?;
    }
    let render = |format| {
        Ok(match format {
            Format::Html => page(document, &json, &command_line()).into_bytes(),
            Format::Csv => csv_figures(document)?,
            Format::CsvSeries => csv_series(document)?,
            Format::Markdown => markdown(document).into_bytes(),
            Format::Json => json.clone().into_bytes(),
        })
    };
    outputs.write(render, || summary(document, options))
}

/// Writes each picture to a file of its own.
fn write_pictures(document: &Document, directory: &Path) -> Result<(), CliError> {
    if let Some(frontier) = &document.frontier {
        Target::open(&directory.join("frontier.svg"))?.write(picture(frontier).document().as_bytes())?;
    }
    Target::open(&directory.join("graph.svg"))?.write(graph(document).document().as_bytes())?;
    for chart in charts(document) {
        let remarks = [chart.caption].into_iter().chain(conclusions(document)).filter(|text| !text.is_empty());
        let page = Page { title: chart.title.to_owned(), subject: describe(document), remarks: remarks.collect() };
        let target = Target::open(&directory.join(format!("{}.svg", chart.slug)))?;
        target.write(svg_document(&page, &chart.figures).as_bytes())?;
    }
    Ok(())
}

/// The longest sparkline, in characters.
const SPARKLINE: usize = 60;

/// Returns the summary for a terminal.
fn summary(document: &Document, options: RenderOptions) -> String {
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

/// Returns the report as one self-contained page. `command` is the command line that reproduces it.
fn page(document: &Document, json: &str, command: &str) -> String {
    let mut out = String::new();
    out.push_str(&format!(
        "<section>\n<h2>The system</h2>\n<figure class=\"wide\" tabindex=\"0\">\n{}</figure>\n",
        graph(document).inline()
    ));
    for one in tables(document) {
        let heads = headings(one.heads.iter().map(|(heading, _)| *heading));
        out.push_str(&format!("<h3>{}</h3>\n<div class=\"wide\" tabindex=\"0\"><table>\n{heads}<tbody>\n", one.title));
        out.extend(one.rows.iter().map(|row| cells(row)));
        out.push_str("</tbody>\n</table></div>\n");
    }
    out.push_str("</section>\n");
    if let Some(frontier) = &document.frontier {
        let picture = picture(frontier).inline();
        out.push_str(&format!(
            "<section>\n<h2>Frontier</h2>\n<figure class=\"wide\" tabindex=\"0\">\n{picture}</figure>\n</section>\n"
        ));
    }
    out.extend(charts(document).iter().map(section));
    out.push_str("<section>\n<h2>Policies</h2>\n<dl>\n");
    for edge in &document.system.edges {
        let (from, to, policy) = (escaped(&edge.from), escaped(&edge.to), escaped(&edge.policy));
        out.push_str(&format!("<dt>{from} to {to}</dt><dd><code>{policy}</code></dd>\n"));
    }
    out.push_str("</dl>\n</section>\n");
    if let Some(first) = document.runs.first() {
        out.push_str(
            "<details>\n<summary>All figures of the first run</summary>\n<div class=\"wide\" tabindex=\"0\"><table \
            id=\"metrics\">\n<tbody>\n",
        );
        out.extend(metrics(document, first).iter().map(|metric| cells(&[metric.key.clone(), metric.text()])));
        out.push_str("</tbody>\n</table></div>\n</details>\n");
    }
    let front = Front {
        heading: "System of services, simulated",
        answer: &conclusions(document),
        scenario: &format!("{}; {}", describe(document), seeds(document)),
    };
    frame(&front, &out, json, command)
}

fn cells(row: &[String]) -> String {
    let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
    format!("<tr>{cells}</tr>\n")
}

/// Returns the tables and the conclusions as Markdown.
fn markdown(document: &Document) -> String {
    let mut out = markdown_text(&describe(document)) + "\n";
    for one in tables(document) {
        let heads: Vec<_> = one.heads.iter().map(|(heading, _)| *heading).collect();
        out.push_str(&format!("\n| {} |\n|---|{}\n", heads.join(" | "), "--:|".repeat(heads.len() - 1)));
        for row in one.rows {
            let cells: Vec<_> = row.iter().map(|cell| markdown_text(cell)).collect();
            out.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    out.push('\n');
    for text in conclusions(document).into_iter().chain([seeds(document)]) {
        out.push_str(&format!("- {}\n", markdown_text(&text)));
    }
    out
}

/// Returns the figures as CSV, one row per run. A value that does not exist is empty.
fn csv_figures(document: &Document) -> Result<Vec<u8>, CliError> {
    let heads = document.runs.first().map(|run| metrics(document, run)).unwrap_or_default();
    let heads = ["seed".to_owned()].into_iter().chain(heads.into_iter().map(|metric| metric.key));
    let rows = document.runs.iter().map(|run| {
        let values = metrics(document, run).into_iter().map(|metric| match metric.value {
            Some(_) if metric.key == "verdict" => metric.text(),
            Some(value) => value.to_string(),
            None => String::new(),
        });
        [run.seed.to_string()].into_iter().chain(values).collect()
    });
    csv_text([heads.collect()].into_iter().chain(rows))
}

/// Returns the time series as CSV, one row per run and second.
fn csv_series(document: &Document) -> Result<Vec<u8>, CliError> {
    let mut heads = ["seed", "t_s", "requests", "goodput"].map(str::to_owned).to_vec();
    heads.extend(document.system.edges.iter().map(|edge| format!("{}/{}.attempts", edge.from, edge.to)));
    heads.extend(document.system.services.iter().map(|service| format!("{}.occupancy", service.name)));
    let mut rows = vec![heads];
    for run in &document.runs {
        for second in 0..run.requests.len() {
            let of = |counts: &[u64]| counts.get(second).copied().unwrap_or(0).to_string();
            let mut row = vec![run.seed.to_string(), second.to_string(), of(&run.requests), of(&run.goodput)];
            row.extend(run.edges.iter().map(|edge| of(&edge.attempts)));
            row.extend(run.services.iter().map(|of| of.occupancy.get(second).copied().unwrap_or(0).to_string()));
            rows.push(row);
        }
    }
    csv_text(rows)
}
