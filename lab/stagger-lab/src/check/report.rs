//! The findings as text for a terminal.

use std::collections::HashSet;

use anstyle::AnsiColor;
use stagger_lint::{Finding, Rule, Severity};
use stagger_terminal::plot::{RenderOptions, paragraph};

use super::files::{Detail, section};
use super::result::{CheckResult, LogResult, PolicyResult};

/// Returns the result as text for a terminal.
pub(super) fn report(checked: &CheckResult, detail: Detail, options: RenderOptions) -> String {
    let mut out = String::new();
    for (at, policy) in checked.policies.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { "\n" });
        out.push_str(&policy_section(policy, options));
    }
    let mut explained = HashSet::new();
    for (at, file) in checked.files.iter().enumerate() {
        out.push_str(if at == 0 && checked.policies.is_empty() { "" } else { "\n" });
        out.push_str(&section(file, &mut explained, detail, options));
    }
    if let Some(log) = &checked.log {
        out.push_str(&log_section(log, options));
    }
    let count = |severity| checked.findings().filter(|finding| finding.rule().severity() == severity).count();
    let (warnings, notes) = (count(Severity::Warning), count(Severity::Note));
    if checked.known > 0 {
        let text = format!("{} of the baseline not shown", counted(checked.known, "finding"));
        out.push_str(&paragraph(&text, "", options));
    }
    if let Some(summary) = summary(warnings, notes) {
        out.push_str(&paragraph(&summary, "", options));
    }
    if checked.without_context {
        let text = "note: no deployment context given; --for, --clients, --capacity and the other context flags \
            enable more rules";
        out.push_str(&paragraph(text, "      ", options));
    }
    options.glyphs.transliterate(&out).into_owned()
}

fn policy_section(checked: &PolicyResult, options: RenderOptions) -> String {
    let text = checked.policy.to_string();
    // If the argument was a whole policy rather than a name, print only its canonical form.
    let name = checked.name.as_ref().filter(|name| !name.contains([' ', '=']) && **name != text);
    let mut out = match name {
        Some(name) => paragraph(&format!("{name}: {text}"), "  ", options),
        None => paragraph(&text, "  ", options),
    };
    if let Some(profile) = checked.connection {
        let text = format!("checked as --for reconnecting: {} is for connections", profile.name());
        out.push_str(&paragraph(&text, "  ", options));
    }
    out.push_str(&findings_section(&checked.findings, options));
    if let Some(fixed) = &checked.fixed
        && !checked.findings.is_empty()
    {
        out.push_str(&labeled("fixed", AnsiColor::Green, &fixed.to_string(), options));
    }
    out
}

fn log_section(checked: &LogResult, options: RenderOptions) -> String {
    let log = &checked.log;
    let mut clients: Vec<&str> = log.entries.iter().filter_map(|entry| entry.client.as_deref()).collect();
    clients.sort_unstable();
    clients.dedup();
    let of = match clients.len() {
        0 => String::new(),
        count => format!(" of {}", counted(count, "client")),
    };
    let skipped = match log.skipped_hints {
        0 => String::new(),
        count => format!(
            "; {} skipped because a server hint determined {}",
            counted(count, "delay"),
            if count == 1 { "it" } else { "them" }
        ),
    };
    let delays = counted(log.entries.len(), "delay");
    let mut out = paragraph(&format!("{}: {delays}{of}{skipped}", checked.name), "  ", options);
    let policy = match (&checked.policy, log.policies.len()) {
        (Some(policy), _) => format!("compared with: {policy}"),
        (None, 0) => "not compared with a policy; give one to check whether these are its delays".to_owned(),
        (None, count) => format!("not compared with a policy: the log names {count}; give one of them"),
    };
    out.push_str(&paragraph(&policy, "  ", options));
    match checked.too_few() {
        Some(few) => out.push_str(&paragraph(&few.to_string(), "  ", options)),
        None => out.push_str(&findings_section(&checked.findings, options)),
    }
    out
}

fn findings_section(findings: &[Finding], options: RenderOptions) -> String {
    match findings {
        [] => "no findings\n".to_owned(),
        _ => findings.iter().map(|finding| finding_section(finding, options)).collect(),
    }
}

/// Formats a finding like a compiler diagnostic: title, figures, reason, fix.
fn finding_section(finding: &Finding, options: RenderOptions) -> String {
    let rule = finding.rule();
    let mut out = title(rule, options);
    for fact in finding.facts() {
        out.push_str(&paragraph(&format!("  {fact}"), "    ", options));
    }
    out.push_str(&paragraph(&format!("  why: {}", rule.rationale()), "    ", options));
    out.push_str(&paragraph(&format!("  help: {}", finding.suggestion()), "    ", options));
    out
}

/// Formats the line that begins a finding.
pub(super) fn title(rule: &Rule, options: RenderOptions) -> String {
    let color = match rule.severity() {
        Severity::Warning => AnsiColor::Yellow,
        _ => AnsiColor::Cyan,
    };
    labeled(&format!("{}[{}]", rule.severity().name(), rule.code()), color, rule.title(), options)
}

/// Formats a line that begins with a label, in color if enabled.
fn labeled(label: &str, color: AnsiColor, text: &str, options: RenderOptions) -> String {
    let lines = paragraph(&format!("{label}: {text}"), "  ", options);
    let style = options.style(color.on_default().bold());
    // Lines are wrapped at spaces only, and the label has none.
    let rest = lines.strip_prefix(label).unwrap_or_default();
    format!("{style}{label}{style:#}{rest}")
}

/// Returns the number of findings; `None` if there are none.
fn summary(warnings: usize, notes: usize) -> Option<String> {
    let counted = [(warnings, "warning"), (notes, "note")].into_iter().filter(|(count, _)| *count > 0);
    let counted: Vec<String> = counted.map(|(count, what)| self::counted(count, what)).collect();
    if counted.is_empty() {
        return None;
    }
    Some(format!("{}; for details: stagger check --explain CODE", counted.join(", ")))
}

/// Formats the line with which a warning begins.
pub(super) fn warning(name: &str, title: &str, options: RenderOptions) -> String {
    labeled(&format!("warning[{name}]"), AnsiColor::Yellow, title, options)
}

pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
