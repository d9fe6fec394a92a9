use anstyle::{AnsiColor, Style};
use stagger_sim::lint::{Finding, Severity};

use super::command::{Checked, CheckedLog, CheckedPolicy};
use crate::plot::{ColorMode, RenderOptions, paragraph};

/// What people read.
pub(super) fn report(checked: &Checked, look: RenderOptions) -> String {
    let mut out = String::new();
    for (at, policy) in checked.policies.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { "\n" });
        out.push_str(&of_policy(policy, look));
    }
    if let Some(log) = &checked.log {
        out.push_str(&of_log(log, look));
    }
    let count = |severity| checked.findings().filter(|finding| finding.rule().severity() == severity).count();
    let (warnings, notes) = (count(Severity::Warning), count(Severity::Note));
    if let Some(summary) = summary(warnings, notes) {
        out.push_str(&paragraph(&summary, "", look));
    }
    if checked.unplaced {
        let text = "note: nothing is known of where it is used; --for, --clients, --capacity and the other \
                    circumstances let more rules speak";
        out.push_str(&paragraph(text, "      ", look));
    }
    look.glyphs.transliterate(&out).into_owned()
}

fn of_policy(checked: &CheckedPolicy, look: RenderOptions) -> String {
    let text = checked.policy.to_string();
    // A policy that was spelled out is told as it is understood.
    let name = checked.name.as_ref().filter(|name| !name.contains([' ', '=']) && **name != text);
    let mut out = match name {
        Some(name) => paragraph(&format!("{name}: {text}"), "  ", look),
        None => paragraph(&text, "  ", look),
    };
    out.push_str(&of_findings(&checked.findings, look));
    if let Some(mended) = checked.mended.as_ref().filter(|_| !checked.findings.is_empty()) {
        out.push_str(&labelled("mended", AnsiColor::Green, &mended.to_string(), look));
    }
    out
}

fn of_log(checked: &CheckedLog, look: RenderOptions) -> String {
    let log = &checked.log;
    let mut clients: Vec<&str> = log.entries.iter().filter_map(|entry| entry.client.as_deref()).collect();
    clients.sort_unstable();
    clients.dedup();
    let of = match clients.len() {
        0 => String::new(),
        many => format!(" of {}", counted(many, "client")),
    };
    let asked = match log.asked {
        0 => String::new(),
        many => format!("; {many} that were asked for are left out"),
    };
    let delays = counted(log.entries.len(), "delay");
    let mut out = paragraph(&format!("{}: {delays}{of}{asked}", checked.name), "  ", look);
    let policy = match (&checked.policy, log.policies.len()) {
        (Some(policy), _) => format!("held against: {policy}"),
        (None, 0) => "held against no policy: name one to learn whether they are what it gives".to_owned(),
        (None, many) => format!("held against no policy: the log names {many}; name one of them"),
    };
    out.push_str(&paragraph(&policy, "  ", look));
    out.push_str(&of_findings(&checked.findings, look));
    out
}

fn of_findings(findings: &[Finding], look: RenderOptions) -> String {
    match findings {
        [] => "no findings\n".to_owned(),
        _ => findings.iter().map(|finding| of_finding(finding, look)).collect(),
    }
}

/// As the compiler does it: what, with its figures, why, and the way out.
fn of_finding(finding: &Finding, look: RenderOptions) -> String {
    let rule = finding.rule();
    let color = match rule.severity() {
        Severity::Warning => AnsiColor::Yellow,
        _ => AnsiColor::Cyan,
    };
    let mut out = labelled(&format!("{}[{}]", rule.severity().name(), rule.code()), color, rule.title(), look);
    for fact in finding.facts() {
        out.push_str(&paragraph(&format!("  {fact}"), "    ", look));
    }
    out.push_str(&paragraph(&format!("  why: {}", rule.why()), "    ", look));
    out.push_str(&paragraph(&format!("  help: {}", finding.help()), "    ", look));
    out
}

/// A line that begins with a label, in color where there is any.
fn labelled(label: &str, color: AnsiColor, text: &str, look: RenderOptions) -> String {
    let lines = paragraph(&format!("{label}: {text}"), "  ", look);
    let style = if look.color == ColorMode::On { color.on_default().bold() } else { Style::new() };
    // Broken at spaces only, so the label is whole.
    let rest = lines.strip_prefix(label).unwrap_or_default();
    format!("{style}{label}{style:#}{rest}")
}

/// How much was found in all; `None` if nothing was.
fn summary(warnings: usize, notes: usize) -> Option<String> {
    let counted = [(warnings, "warning"), (notes, "note")].into_iter().filter(|(many, _)| *many > 0);
    let counted: Vec<String> = counted.map(|(many, what)| self::counted(many, what)).collect();
    (!counted.is_empty()).then(|| format!("{}; stagger check --explain CODE says more", counted.join(", ")))
}

fn counted(many: usize, what: &str) -> String {
    format!("{many} {what}{}", if many == 1 { "" } else { "s" })
}
