use stagger_sim::storm::StormReport;

use super::measurements::{agreements, measurements, unreliable_runs};
use super::results::{Results, describe};

/// Returns the table as Markdown, with the best value of each column in bold.
pub(super) fn table(storm: &StormReport, results: &Results<'_>) -> String {
    let mut out = escaped(&describe(storm)) + "\n\n";
    let heads: Vec<&str> = results.table_metrics().map(|metric| metric.heading).collect();
    out.push_str(&format!("| strategy | {} |\n|---|{}\n", heads.join(" | "), "--:|".repeat(heads.len())));
    for (name, cells) in results.table(results.table_metrics()) {
        let cells =
            cells.iter().map(|cell| if cell.is_best { format!("**{}**", cell.text) } else { cell.text.clone() });
        out.push_str(&format!("| {} | {} |\n", escaped(name), cells.collect::<Vec<_>>().join(" | ")));
    }
    out.push('\n');
    for (name, policy, _) in results.policies() {
        out.push_str(&format!("- {}: `{policy}`\n", escaped(&name)));
    }
    for remark in [unreliable_runs(storm), agreements(storm), measurements(storm)].into_iter().flatten() {
        out.push_str(&format!("- {}\n", escaped(&remark)));
    }
    out
}

/// Escapes text so that it contains no markup. Line breaks become spaces, since they would end the table row.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a|b<i>*c*\n[x](y)`z`"), "a\\|b&lt;i&gt;\\*c\\* \\[x\\](y)\\`z\\`");
    }
}
