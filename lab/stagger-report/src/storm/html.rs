use stagger_sim::storm::StormReport;

use super::key_figures::{self, KeyRow};
use super::measurements::{agreements, is_measured, measurements, unreliable_runs};
use super::results::{Cell, Results, describe};
use super::summary::{conclusion, seeds};
use crate::page::{Chart, Front, frame, headings, section};
use stagger_terminal::plot::svg::escaped;

/// Returns the report as one self-contained page, readable without its script. `command` is the command line that
/// reproduces it.
///
/// First the answer, the picture that shows it and the figures that decide; everything else is below or folded.
pub(super) fn page(storm: &StormReport, results: &Results<'_>, charts: &[Chart], json: &str, command: &str) -> String {
    let heading = if is_measured(storm) { "measured and simulated" } else { "simulated" };
    let mut out = String::new();
    for text in unreliable_runs(storm) {
        out.push_str(&format!("<p class=\"warning\">{}.</p>\n", escaped(&text)));
    }
    let (first, others) = charts.split_at(charts.len().min(1));
    out.extend(first.iter().map(section));
    out.push_str("<section>\n<h2>Figures</h2>\n");
    out.push_str(&key_table(storm, results));
    out.push_str("<details>\n<summary>All figures</summary>\n");
    out.push_str(&metrics_table(results));
    out.push_str("</details>\n");
    let measured = measurements(storm);
    if !measured.is_empty() {
        out.push_str("<details>\n<summary>How it was measured</summary>\n");
        out.extend(measured.iter().map(|text| format!("<p>{}.</p>\n", escaped(text))));
        out.push_str("</details>\n");
    }
    out.push_str("</section>\n<section>\n<h2>Policies</h2>\n<dl>\n");
    for (name, policy, guards) in results.policies() {
        let guards = guards.map_or(String::new(), |guards| format!(", guards {}", escaped(guards)));
        let (name, policy) = (escaped(&name), escaped(policy));
        out.push_str(&format!("<dt>{name}</dt><dd><code>{policy}</code>{guards}</dd>\n"));
    }
    out.push_str("</dl>\n</section>\n");
    out.extend(others.iter().map(section));
    let seeds = seeds(results).map(|seeds| format!("; {seeds}")).unwrap_or_default();
    let front = Front {
        heading: &format!("Retry storm, {heading}"),
        answer: &[conclusion(storm, results), agreements(storm)].concat(),
        scenario: &(describe(storm) + &seeds),
    };
    frame(&front, &out, json, command)
}

/// Returns the table of the figures that decide: one row per policy.
fn key_table(storm: &StormReport, results: &Results<'_>) -> String {
    let heads: Vec<&str> = key_figures::headings(storm).collect();
    let mut out = format!(
        "<table class=\"key\" id=\"figures\">\n{}<tbody>\n",
        headings(["policy"].into_iter().chain(heads.iter().copied()))
    );
    for KeyRow { name, cells } in key_figures::key_rows(storm, results) {
        out.push_str(&format!("<tr><th scope=\"row\">{}</th>", escaped(&name)));
        for (cell, head) in cells.iter().zip(&heads) {
            let class = match (cell.is_over, cell.is_best) {
                (true, true) => " class=\"over best\"",
                (true, false) => " class=\"over\"",
                (false, true) => " class=\"best\"",
                (false, false) => "",
            };
            let notes: String = cell.notes.iter().map(|note| format!("<small>{}</small>", escaped(note))).collect();
            out.push_str(&format!("<td{class} data-head=\"{head}\">{}{notes}</td>", escaped(&cell.text)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n");
    out
}

/// Returns the table of all metrics: one row per metric and one column per strategy, because there are too many metrics
/// for columns.
fn metrics_table(results: &Results<'_>) -> String {
    let heads = headings(["metric"].into_iter().chain(results.rows.iter().map(|row| &*row.name)));
    let mut out = format!("<div class=\"wide\"><table id=\"metrics\">\n{heads}<tbody>\n");
    for metric in results.metrics {
        out.push_str(&format!("<tr data-key=\"{}\"><th scope=\"row\">{}</th>", metric.key, escaped(metric.heading)));
        for Cell { value, text, is_best } in results.column(metric) {
            let exact = value.map_or(String::new(), |value| value.to_string());
            let class = if is_best { " class=\"best\"" } else { "" };
            out.push_str(&format!("<td{class} data-value=\"{exact}\">{}</td>", escaped(&text)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    out
}
