use stagger_sim::storm::StormReport;

use super::observed::{doubtful, observed};
use super::record::{Records, described};

/// The table for a page of Markdown, the best of each column in bold.
pub(crate) fn table(storm: &StormReport, records: &Records) -> String {
    let mut out = escaped(&described(&storm.scenario)) + "\n\n";
    let heads: Vec<&str> = records.shown().map(|measure| measure.heading).collect();
    out.push_str(&format!("| strategy | {} |\n|---|{}\n", heads.join(" | "), "--:|".repeat(heads.len())));
    for (name, cells) in records.table(records.shown()) {
        let cells =
            cells.iter().map(|cell| if cell.is_best { format!("**{}**", cell.text) } else { cell.text.clone() });
        out.push_str(&format!("| {} | {} |\n", escaped(name), cells.collect::<Vec<_>>().join(" | ")));
    }
    out.push('\n');
    for (name, policy, _) in records.policies() {
        out.push_str(&format!("- {}: `{policy}`\n", escaped(name)));
    }
    for remark in doubtful(storm).iter().chain(&observed(storm)) {
        out.push_str(&format!("- {}\n", escaped(remark)));
    }
    out
}

/// Text that is no markup; a line break would end its line of the table.
fn escaped(text: &str) -> String {
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
    fn no_name_is_markup() {
        assert_eq!(escaped("a|b<i>*c*\n[x](y)`z`"), "a\\|b&lt;i&gt;\\*c\\* \\[x\\](y)\\`z\\`");
    }
}
