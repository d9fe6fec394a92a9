use super::catalog::{INCIDENTS, Incident};
use super::comparison::Comparison;
use super::outcome::Outcome;
use super::reference::{Reference, Variant};
use stagger_report::storm::markdown_text;
use stagger_terminal::plot::{Column, RenderOptions, paragraph, table, wrap};

/// The width of Markdown, in characters.
const COLUMNS: usize = 140;

/// Returns the list of all incidents.
pub(super) fn list(options: RenderOptions) -> String {
    let columns = [Column::left("incident"), Column::left("what failed").optional()];
    let rows = INCIDENTS.iter().map(|incident| vec![incident.name(), incident.title]);
    let mut out = table(&columns, rows, options);
    let hint = "`stagger simulate @incident/NAME` runs an incident without and with its cure; --print prints its file, to change it. \
                @incident/NAME/failure and @incident/NAME/cure are its two files by themselves, for all other flags";
    out.push('\n');
    out.push_str(&paragraph(hint, "", options));
    options.glyphs.transliterate(&out).into_owned()
}

/// Returns what is known of an incident, and what became of it, for a terminal.
pub(super) fn text(comparison: &Comparison, options: RenderOptions) -> String {
    let incident = comparison.incident;
    let mut out = paragraph(&format!("{}, {}", incident.title, incident.date), "  ", options);
    out.push_str(&paragraph(incident.happened, "", options));
    out.push('\n');
    let mut part = |text: &str| out.push_str(&paragraph(text, "  ", options));
    for source in incident.sources {
        part(&format!("source: {source}"));
    }
    part(&format!("published: {}", incident.published));
    part(&format!("assumed: {}", incident.assumed));
    part(&format!("not in the model: {}", incident.left_out));
    for (heading, outcome, variant) in sides(comparison) {
        out.push_str(&format!("\n{heading}\n"));
        if variant == Variant::Cure {
            out.push_str(&paragraph(&format!("  cure: {}", incident.cure), "    ", options));
            for (sign, line) in changes(incident) {
                out.push_str(&paragraph(&format!("    {sign} {line}"), "      ", options));
            }
        }
        for (name, finding) in &outcome.findings {
            out.push_str(&paragraph(&format!("  {name}: {finding}"), "    ", options));
        }
    }
    options.glyphs.transliterate(&out).into_owned()
}

/// Returns a section about an incident as Markdown. `pictures` is the directory of its picture, if there is one.
pub(super) fn section(comparison: &Comparison, pictures: Option<&str>) -> String {
    let incident = comparison.incident;
    let mut out = format!("## {}\n\n", markdown_text(incident.title));
    let lines = |text: &str, indent: &str| wrap(text, COLUMNS, indent).join("\n") + "\n";
    let plain = |text: &str| markdown_text(text);
    out.push_str(&lines(&format!("{}. {}", plain(incident.date), plain(incident.happened)), ""));
    out.push('\n');
    let sources: Vec<_> = incident.sources.iter().map(|source| format!("<{source}>")).collect();
    for (name, text) in [
        ("Source", sources.join(", ")),
        ("Published", plain(incident.published)),
        ("Assumed", plain(incident.assumed)),
        ("Not in the model", plain(incident.left_out)),
        ("Cure", plain(incident.cure)),
    ] {
        out.push_str(&lines(&format!("- **{name}**: {text}."), "  "));
    }
    out.push_str("\n```diff\n");
    out.extend(changes(incident).map(|(sign, line)| format!("{sign}{line}\n")));
    out.push_str("```\n\n");
    out.push_str(&format!("`stagger simulate {}` says:\n\n", Reference::Both(incident)));
    out.push_str("| | without the cure | with the cure |\n|---|---|---|\n");
    let finding = |outcome: &Outcome, name: &str| {
        let found = outcome.findings.iter().find(|(other, _)| other == name);
        found.map_or("–".to_owned(), |(_, finding)| plain(finding))
    };
    for (name, _) in &comparison.failure.findings {
        let (failure, cure) = (finding(&comparison.failure, name), finding(&comparison.cure, name));
        out.push_str(&format!("| {name} | {failure} | {cure} |\n"));
    }
    if let Some(directory) = pictures {
        let alternative = plain(&format!("{} without and with the cure", comparison.failure.course.counted));
        out.push_str(&format!("\n![{alternative}]({directory}/{}.svg)\n", incident.name()));
    }
    out
}

fn sides(comparison: &Comparison) -> [(&'static str, &Outcome, Variant); 2] {
    [("without the cure", &comparison.failure, Variant::Failure), ("with the cure", &comparison.cure, Variant::Cure)]
}

/// Returns the lines that the cure removes, and those that it adds.
fn changes(incident: &'static Incident) -> impl Iterator<Item = (char, &'static str)> {
    let of = |variant, sign| incident.own_lines(variant).into_iter().map(move |line| (sign, line));
    of(Variant::Failure, '-').chain(of(Variant::Cure, '+'))
}
