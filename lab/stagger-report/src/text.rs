//! Reports as text: for a terminal, as Markdown and as CSV.

use anstyle::AnsiColor;
use csv::Writer;
use stagger_core::text::Outside;
use stagger_sim::storm::{Importance, MetricValue};
use stagger_terminal::output::error::CliError;
use stagger_terminal::plot::{self, Column, RenderOptions, bold, paragraph, sparkline, table};

use crate::report::{Cell, Figures, Finding, Named, Part, Report, Table};

/// Width of a sparkline beside figures, in characters.
pub(crate) const SPARKLINE_WIDTH: usize = 20;

/// Width of the widest sparkline with a line to itself.
const WIDEST_SPARKLINE: usize = 60;

/// Returns the report for a terminal: the scenario, the parts, and the warnings.
pub(crate) fn terminal(report: &Report, options: RenderOptions) -> String {
    let line = |text: &str| paragraph(text, if text.starts_with("note: ") { "      " } else { "  " }, options);
    let mut out = String::new();
    let mut is_after_table = false;
    for part in &report.parts {
        let is_table =
            matches!(part, Part::Figures | Part::Table(_) | Part::Map(..) | Part::Reasons(_) | Part::Code(..));
        let text = match part {
            Part::Scenario => line(&report.scenario),
            Part::Summary(text) | Part::Text(text) => line(text),
            Part::Finding(found) => finding(found, options),
            Part::List(title, items) => {
                let item = |text: &String| paragraph(&format!("  {text}"), "    ", options);
                [format!("{title}\n")].into_iter().chain(items.iter().map(item)).collect()
            }
            Part::Reasons(reasons) => {
                let reason = |(of, text): &(String, String)| paragraph(&format!("  {of}: {text}"), "    ", options);
                ["reasons\n".to_owned()].into_iter().chain(reasons.iter().map(reason)).collect()
            }
            // Not wrapped, so that it can be copied.
            Part::Code(title, text) => format!("{title}\n{}", indented(text)),
            Part::Figures => figures(&report.figures, options),
            Part::Table(table) => text_table(table, options),
            Part::Answer => {
                let sentences = [&report.seeds].into_iter().chain(&report.answer);
                sentences.filter(|text| !text.is_empty()).map(|text| line(text)).collect()
            }
            Part::Policies(_, policies) => policies.iter().map(|policy| line(&described(policy))).collect(),
            Part::Notes(_, sentences) => sentences.iter().map(|text| line(text)).collect(),
            Part::Map(_, draw) => draw(options),
            Part::Curves(curves) => lines(curves, options),
            // A blank line separates what has headings on a page.
            Part::Heading(_) if !out.is_empty() => "\n".to_owned(),
            Part::Chart(_) | Part::Graph(_) | Part::Heading(_) | Part::Pictures(_) => continue,
        };
        if (is_table && !out.is_empty()) || is_after_table {
            out.push('\n');
        }
        is_after_table = is_table;
        out.push_str(&text);
    }
    out.extend(report.warnings.iter().map(|text| line(text)));
    options.glyphs.transliterate(&out).replace('→', options.glyphs.pick("→", "->"))
}

fn described(Named { name, policy, guards }: &Named) -> String {
    let guards = guards.as_ref().map_or(String::new(), |guards| format!(", guards {guards}"));
    let colon = if name.is_empty() { "" } else { ": " };
    format!("{name}{colon}{policy}{guards}")
}

/// Formats a finding like a compiler diagnostic: title, place, facts, reason, fix.
fn finding(found: &Finding, options: RenderOptions) -> String {
    let item = |text: &str| paragraph(&format!("  {text}"), "    ", options);
    let label = format!("{}[{}]", found.severity(), found.code);
    let color = if found.is_warning { AnsiColor::Yellow } else { AnsiColor::Cyan };
    let title = paragraph(&format!("{label}: {}", found.title), "  ", options);
    let style = options.style(color.on_default().bold());
    // Lines are wrapped at spaces only, and the label has none.
    let mut out = format!("{style}{label}{style:#}{}{}", title.strip_prefix(&label).unwrap_or_default(), found.source);
    out.extend(found.facts.iter().map(|fact| item(fact)));
    out.extend(found.why.as_ref().map(|why| item(&format!("why: {why}"))));
    out.push_str(&item(&format!("help: {}", found.help)));
    out.push_str(&found.change);
    if !found.others.is_empty() {
        out.push_str(&item(&found.others));
    }
    out
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Returns the table of the figures, with a sparkline of each row if there is room.
fn figures(figures: &Figures, options: RenderOptions) -> String {
    let mut columns = vec![Column::left("")];
    let mut rows: Vec<Vec<plot::Cell>> = figures.rows.iter().map(|row| vec![row.name.as_str().into()]).collect();
    for at in figures.shown() {
        let metric = &figures.metrics[at];
        let column = Column::right(&metric.heading);
        columns.push(if metric.importance == Importance::Primary { column } else { column.optional() });
        for (row, Cell { text, is_best, .. }) in rows.iter_mut().zip(figures.column(at)) {
            row.push(if is_best { bold(text) } else { text.into() });
        }
    }
    if figures.rows.iter().any(|row| !row.curve.is_empty()) {
        columns.push(Column::left(figures.curve).optional());
        for (row, of) in rows.iter_mut().zip(&figures.rows) {
            row.push(sparkline(&of.curve, options.glyphs).into());
        }
    }
    table(&columns, rows, options)
}

fn text_table(of: &Table, options: RenderOptions) -> String {
    let columns = of.heads.iter().enumerate().map(|(nth, (heading, is_optional))| {
        let column = if nth == 0 { Column::left(heading) } else { Column::right(heading) };
        if *is_optional { column.optional() } else { column }
    });
    let rows = of.rows.iter().enumerate().map(|(nth, row)| match of.best {
        None => row.clone(),
        Some(best) => {
            let mut row = row.clone();
            row[0].insert_str(0, if nth == best { "=> " } else { "   " });
            row
        }
    });
    format!(
        "{}{}",
        if of.title.is_empty() { String::new() } else { paragraph(&of.title, "  ", options) },
        table(&columns.collect::<Vec<_>>(), rows, options)
    )
}

/// Draws series of equal length on one scale, a line for each.
fn lines(curves: &[(&str, Vec<f64>)], options: RenderOptions) -> String {
    let width = usize::from(options.columns).saturating_sub(12).clamp(10, WIDEST_SPARKLINE);
    let resampled = |values: &[f64]| -> Vec<f64> {
        let cell = |nth: usize| {
            let from = nth * values.len() / width;
            let until = ((nth + 1) * values.len() / width).max(from + 1);
            let part = values.get(from..until.min(values.len())).unwrap_or_default();
            part.iter().sum::<f64>() / (until - from) as f64
        };
        (0..width).map(cell).collect()
    };
    let drawn: Vec<_> = curves.iter().map(|(name, values)| (name, resampled(values))).collect();
    let most = drawn.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max);
    let line = |(name, values): &(&&str, Vec<f64>)| {
        // The largest value of all is a cell at the end, which is not shown.
        let scaled: Vec<f64> = values.iter().copied().chain([most]).collect();
        let drawn: String = sparkline(&scaled, options.glyphs).chars().take(values.len()).collect();
        format!("{name:<10} {}\n", drawn.trim_end())
    };
    drawn.iter().map(line).collect()
}

/// Returns the report as Markdown: tables with the best values in bold, policies, and all sentences.
pub(crate) fn markdown(report: &Report) -> String {
    let mut out = String::new();
    let mut sentences: Vec<String> = Vec::new();
    for part in &report.parts {
        match part {
            Part::Scenario => out.push_str(&format!("{}\n", markdown_text(&report.scenario))),
            Part::Figures => out.push_str(&markdown_figures(&report.figures)),
            Part::Table(table) => {
                let heads: Vec<&str> = table.heads.iter().map(|(heading, _)| *heading).collect();
                let rows = table.rows.iter().map(|row| row.iter().map(|cell| markdown_text(cell)).collect());
                out.push_str(&markdown_table(&heads, rows));
            }
            Part::Policies(_, policies) => sentences
                .extend(policies.iter().map(|policy| format!("{}: `{}`", markdown_text(&policy.name), policy.policy))),
            Part::Answer => {
                sentences.extend([&report.seeds].into_iter().chain(&report.answer).map(|text| markdown_text(text)));
            }
            Part::Notes(_, notes) => sentences.extend(notes.iter().map(|text| markdown_text(text))),
            // Only simulations and drills are written as Markdown.
            _ => {}
        }
    }
    sentences.extend(report.warnings.iter().map(|text| markdown_text(text)));
    out.push('\n');
    out.extend(sentences.iter().filter(|text| !text.is_empty()).map(|text| format!("- {text}\n")));
    out
}

fn markdown_figures(figures: &Figures) -> String {
    let shown: Vec<usize> = figures.shown().collect();
    let name = figures.labels.first().copied().unwrap_or_default();
    let heads: Vec<&str> = [name].into_iter().chain(shown.iter().map(|at| &*figures.metrics[*at].heading)).collect();
    let mut rows: Vec<Vec<String>> = figures.rows.iter().map(|row| vec![markdown_text(&row.name)]).collect();
    for at in shown {
        for (row, Cell { text, is_best, .. }) in rows.iter_mut().zip(figures.column(at)) {
            row.push(if is_best { format!("**{text}**") } else { text });
        }
    }
    markdown_table(&heads, rows.into_iter())
}

fn markdown_table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rule = "--:|".repeat(heads.len().saturating_sub(1));
    let mut out = format!("\n| {} |\n|---|{rule}\n", heads.join(" | "));
    out.extend(rows.map(|row| format!("| {} |\n", row.join(" | "))));
    out
}

/// Escapes text so that it contains no markup. Line breaks become spaces, since they would end the table row.
pub(crate) fn markdown_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => out.extend(['\\', c]),
            c if !Outside::shows(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Returns the figures as CSV, one row per run. A value that does not exist is empty.
pub(crate) fn csv(figures: &Figures) -> Result<Vec<u8>, CliError> {
    let mut writer = Writer::from_writer(Vec::new());
    let labels = figures.labels.iter().map(|&label| label.to_owned());
    let heads: Vec<String> = labels.chain(figures.metrics.iter().map(|metric| metric.key.clone())).collect();
    let values = |value: &Option<MetricValue>| value.map_or(String::new(), |value| value.to_string());
    let runs = figures.rows.iter().flat_map(|row| &row.runs);
    let rows = runs.map(|run| run.labels.iter().cloned().chain(run.values.iter().map(values)).collect());
    let mut all = [heads].into_iter().chain(rows);
    let failed = |error| CliError::io("cannot write CSV", error);
    all.try_for_each(|row: Vec<String>| writer.write_record(row)).map_err(failed)?;
    writer.into_inner().map_err(|error| CliError::io("cannot write CSV", error.into_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(markdown_text("a|b<i>*c*\n[x](y)`z`"), "a\\|b&lt;i&gt;\\*c\\* \\[x\\](y)\\`z\\`");
    }
}
