use stagger_sim::storm::StormReport;

use super::chart::Chart;
use super::observed::{doubtful, is_measured, observed};
use super::record::{Cell, Records, described};
use super::summary::{runs, verdict};
use crate::plot::Figure;
use crate::plot::svg::{escaped, inline, sheet};

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
/// What the policy of the page lets run: this script and no other. A test holds it to the script.
const SCRIPT_SHA256: &str = include_str!("report.js.sha256");

/// The report: one page that needs nothing beside it, and no script to be read. `command` is what makes it again.
pub(crate) fn page(storm: &StormReport, records: &Records, charts: &[Chart], json: &str, command: &str) -> String {
    let title = escaped(&described(&storm.scenario));
    let hash = SCRIPT_SHA256.trim();
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
         script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"stagger {}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n<h1>A retry storm, {}</h1>\n\
         <p>{title}.</p>\n",
        env!("CARGO_PKG_VERSION"),
        sheet(),
        if is_measured(storm) { "measured and simulated" } else { "simulated" },
    );
    for (class, text) in [("verdict", verdict(storm, records)), ("quiet", runs(records))] {
        if let Some(text) = text {
            out.push_str(&format!("<p class=\"{class}\">{}.</p>\n", escaped(&text)));
        }
    }
    for (class, remarks) in [("verdict", doubtful(storm)), ("quiet", observed(storm))] {
        out.extend(remarks.iter().map(|text| format!("<p class=\"{class}\">{}.</p>\n", escaped(text))));
    }
    out.push_str("<section>\n<h2>Figures</h2>\n");
    out.push_str(&figures(records));
    out.push_str("</section>\n<section>\n<h2>Policies</h2>\n<dl>\n");
    for (name, policy, guards) in records.policies() {
        let guards = guards.map_or(String::new(), |guards| format!(", guards {}", escaped(guards)));
        let (name, policy) = (escaped(name), escaped(policy));
        out.push_str(&format!("<dt>{name}</dt><dd><code>{policy}</code>{guards}</dd>\n"));
    }
    out.push_str("</dl>\n</section>\n");
    for chart in charts {
        out.push_str(&section(chart));
    }
    // `<` is the only sign that could end the element.
    let json = json.trim_end().replace('<', "\\u003c");
    out.push_str(&format!(
        "<footer class=\"quiet\"><p>Made by stagger {}: <code>{}</code></p></footer>\n</main>\n<script type=\"application/json\" id=\"storm\">{json}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
        escaped(command),
    ));
    out
}

/// All figures of all strategies: a line for each figure, or the table would be wider than any screen.
fn figures(records: &Records) -> String {
    let mut out = String::from("<div class=\"wide\"><table id=\"figures\">\n<thead><tr><th scope=\"col\">figure</th>");
    for row in &records.rows {
        out.push_str(&format!("<th scope=\"col\">{}</th>", escaped(&row.name)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for measure in records.measures {
        out.push_str(&format!("<tr data-key=\"{}\"><th scope=\"row\">{}</th>", measure.key, escaped(measure.heading)));
        for Cell { value, text, is_best } in records.column(measure) {
            let exact = value.map_or(String::new(), |value| value.to_string());
            let class = if is_best { " class=\"best\"" } else { "" };
            out.push_str(&format!("<td{class} data-value=\"{exact}\">{}</td>", escaped(&text)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    out
}

fn figure(figure: &Figure) -> String {
    format!("<figure class=\"wide\">\n{}</figure>\n", inline(figure))
}

fn section(chart: &Chart) -> String {
    let mut out = format!("<section>\n<h2>{}</h2>\n", chart.title);
    if !chart.about.is_empty() {
        out.push_str(&format!("<p>{}</p>\n", escaped(&chart.about)));
    }
    out.extend(chart.figures.iter().map(figure));
    if !chart.logarithmic.is_empty() {
        out.push_str("<details>\n<summary>The same on a logarithmic scale</summary>\n");
        out.extend(chart.logarithmic.iter().map(figure));
        out.push_str("</details>\n");
    }
    out.push_str("<details>\n<summary>The same as a table</summary>\n<div class=\"wide\"><table>\n<thead><tr>");
    for head in &chart.heads {
        out.push_str(&format!("<th scope=\"col\">{}</th>", escaped(head)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &chart.rows {
        out.push_str("<tr>");
        for cell in row {
            out.push_str(&format!("<td>{}</td>", escaped(cell)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n</details>\n</section>\n");
    out
}
