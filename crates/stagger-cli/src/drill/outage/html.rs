use super::charts::charts;
use super::document::Document;
use super::report::{describe, heads, remarks, rows};
use crate::plot::svg::escaped;
use crate::storm::{frame, headings, section};

/// Returns the report as one self-contained page. `command` is the command line that reproduces it.
pub(super) fn page(document: &Document, json: &str, command: &str) -> String {
    let mut out: String =
        remarks(document).iter().map(|remark| format!("<p class=\"conclusion\">{}.</p>\n", escaped(remark))).collect();
    out.push_str(&format!(
        "<section>\n<h2>Figures</h2>\n<div class=\"wide\"><table id=\"metrics\">\n{}<tbody>\n",
        headings(heads())
    ));
    for row in rows(document) {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        out.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    out.push_str("</tbody>\n</table></div>\n</section>\n<section>\n<h2>Policies</h2>\n<dl>\n");
    for policy in &document.policies {
        out.push_str(&format!("<dt>{}</dt><dd><code>{}</code></dd>\n", escaped(&policy.name), escaped(&policy.policy)));
    }
    out.push_str("</dl>\n</section>\n");
    out.extend(charts(document).iter().map(section));
    frame(&describe(document), "Outage, measured and simulated", &out, json, command)
}
