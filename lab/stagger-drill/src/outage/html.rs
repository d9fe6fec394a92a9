use super::charts::charts;
use super::document::Document;
use super::report::{answer, describe, heads, machines, rows};
use stagger_report::page::{Front, frame, headings, section};
use stagger_terminal::plot::svg::escaped;

/// Returns the report as one self-contained page. `command` is the command line that reproduces it.
pub(super) fn page(document: &Document, json: &str, command: &str) -> String {
    let charts = charts(document);
    let (first, others) = charts.split_at(charts.len().min(1));
    let mut out: String = first.iter().map(section).collect();
    out.push_str(&format!(
        "<section>\n<h2>Figures</h2>\n<div class=\"wide\"><table id=\"metrics\">\n{}<tbody>\n",
        headings(heads())
    ));
    for row in rows(document) {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        out.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    out.push_str("</tbody>\n</table></div>\n<details>\n<summary>How it was measured</summary>\n");
    out.extend(machines(document).map(|text| format!("<p>{}.</p>\n", escaped(&text))));
    out.push_str("</details>\n</section>\n<section>\n<h2>Policies</h2>\n<dl>\n");
    for policy in &document.policies {
        out.push_str(&format!("<dt>{}</dt><dd><code>{}</code></dd>\n", escaped(&policy.name), escaped(&policy.policy)));
    }
    out.push_str("</dl>\n</section>\n");
    out.extend(others.iter().map(section));
    let front =
        Front { heading: "Outage, measured and simulated", answer: &answer(document), scenario: &describe(document) };
    frame(&front, &out, json, command)
}
