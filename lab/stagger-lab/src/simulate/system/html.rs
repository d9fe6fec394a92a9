use super::charts::{charts, graph};
use super::document::Document;
use super::frontier::picture;
use super::metric::metrics;
use super::tables::tables;
use super::words::{conclusions, describe, seeds};
use stagger_report::page::{Front, frame, headings, section};
use stagger_terminal::plot::svg::escaped;

/// Returns the report as one self-contained page. `command` is the command line that reproduces it.
pub(super) fn page(document: &Document, json: &str, command: &str) -> String {
    let mut out = String::new();
    out.push_str(&format!(
        "<section>\n<h2>The system</h2>\n<figure class=\"wide\">\n{}</figure>\n",
        graph(document).inline()
    ));
    for one in tables(document) {
        let heads = headings(one.heads.iter().map(|(heading, _)| *heading));
        out.push_str(&format!("<h3>{}</h3>\n<div class=\"wide\"><table>\n{heads}<tbody>\n", one.title));
        out.extend(one.rows.iter().map(|row| cells(row)));
        out.push_str("</tbody>\n</table></div>\n");
    }
    out.push_str("</section>\n");
    if let Some(frontier) = &document.frontier {
        let picture = picture(frontier).inline();
        out.push_str(&format!(
            "<section>\n<h2>Frontier</h2>\n<figure class=\"wide\">\n{picture}</figure>\n</section>\n"
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
        out.push_str("<details>\n<summary>All figures of the first run</summary>\n<div class=\"wide\"><table id=\"metrics\">\n<tbody>\n");
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
