//! The findings as a page.

use std::collections::HashSet;

use stagger_core::Policy;
use stagger_lint::{Finding, Severity};
use stagger_report::page::{Front, delays, frame};
use stagger_terminal::plot::svg::{escaped, inline};

use super::files::{FileResult, Shown, shown};
use super::report::counted;
use super::result::{CheckResult, LogResult, PolicyResult};

/// Returns the result as one self-contained page. `json` is the same result as a document, and `command` the command
/// line that reproduces it.
pub(super) fn page(checked: &CheckResult, json: &str, command: &str) -> String {
    let mut out = String::new();
    out.extend(checked.policies.iter().map(policy_section));
    let mut explained = HashSet::new();
    out.extend(checked.files.iter().map(|file| file_section(file, &mut explained)));
    out.extend(checked.log.iter().map(log_section));
    let front = Front { heading: "Retries, checked", answer: &answer(checked), scenario: &subjects(checked) };
    frame(&front, &out, json, command)
}

/// Returns what was found, in a sentence: how much, and what comes first.
fn answer(checked: &CheckResult) -> Vec<String> {
    let count = |severity| checked.findings().filter(|finding| finding.rule().severity() == severity).count();
    let counts = [(count(Severity::Warning), "warning"), (count(Severity::Note), "note")];
    let told: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(*count, what)).collect();
    let worst = |severity| checked.findings().find(|finding| finding.rule().severity() == severity);
    let mut out = match worst(Severity::Warning).or_else(|| worst(Severity::Note)) {
        None => match checked.log.as_ref().and_then(LogResult::too_few) {
            Some(few) => vec![sentence(&few.to_string())],
            None => vec!["No findings".to_owned()],
        },
        Some(first) => vec![format!("{}: first of all, {}", told.join(" and "), first.rule().title())],
    };
    if checked.known > 0 {
        out.push(format!("{} of the baseline not shown", counted(checked.known, "finding")));
    }
    if checked.without_context {
        out.push(
            "No deployment context was given; --for, --clients, --capacity and the other context flags enable more \
             rules"
                .to_owned(),
        );
    }
    out
}

/// Names what was checked.
fn subjects(checked: &CheckResult) -> String {
    let policies = checked.policies.iter().map(title);
    let files = checked.files.iter().map(|file| format!("{}, {}", file.name, file.kind));
    let log = checked.log.iter().map(|log| log.name.clone());
    policies.chain(files).chain(log).collect::<Vec<_>>().join("; ")
}

fn title(checked: &PolicyResult) -> String {
    checked.name.clone().unwrap_or_else(|| checked.policy.to_string())
}

/// Returns the section of a policy: its delays, and those of the fixed one beside them, with the findings.
fn policy_section(checked: &PolicyResult) -> String {
    let fixed = if checked.findings.is_empty() { None } else { checked.fixed.as_ref() };
    let mut pictures: Vec<(&str, &Policy)> = vec![("as it is", &checked.policy)];
    if let Some(policy) = fixed {
        pictures.push(("fixed", policy));
    }
    let code = |what: &str, policy: &Policy| format!("<p>{what}<code>{}</code></p>\n", escaped(&policy.to_string()));
    let mut out = format!("<section>\n<h2>{}</h2>\n", escaped(&title(checked)));
    out.push_str(&inline(&delays(&pictures)));
    out.push_str(&code("", &checked.policy));
    out.extend(fixed.map(|policy| code("Fixed: ", policy)));
    if let Some(profile) = checked.connection {
        out.push_str(&format!("<p>Checked as the policy of a connection: {} is one.</p>\n", escaped(profile.name())));
    }
    out.push_str(&findings(&checked.findings));
    out + "</section>\n"
}

fn log_section(checked: &LogResult) -> String {
    let (name, delays) = (escaped(&checked.name), counted(checked.log.entries.len(), "delay"));
    let findings = match checked.too_few() {
        Some(few) => format!("<p>{}.</p>\n", escaped(&sentence(&few.to_string()))),
        None => findings(&checked.findings),
    };
    format!("<section>\n<h2>{name}</h2>\n<p>{delays}.</p>\n{findings}</section>\n")
}

/// Returns a text that begins with a capital letter.
fn sentence(text: &str) -> String {
    let (first, rest) = text.split_at_checked(1).unwrap_or(("", text));
    first.to_uppercase() + rest
}

fn findings(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return "<p>No findings.</p>\n".to_owned();
    }
    findings.iter().map(|finding| article(finding, "", true, "")).collect()
}

fn file_section(checked: &FileResult, explained: &mut HashSet<&'static str>) -> String {
    let mut out = format!("<section>\n<h2>{}</h2>\n<p>{}.</p>\n", escaped(&checked.name), escaped(&checked.kind));
    if checked.findings.is_empty() {
        out.push_str("<p>No findings.</p>\n");
    }
    for Shown { finding, source, change, others } in shown(checked) {
        let preformatted = |text: &str| match text.trim_end() {
            "" => String::new(),
            text => format!("<pre tabindex=\"0\">{}</pre>\n", escaped(text)),
        };
        let others = if others.is_empty() { String::new() } else { format!("<p>{}.</p>\n", escaped(others.trim())) };
        let is_new = explained.insert(finding.rule().code());
        out.push_str(&article(finding, &preformatted(&source), is_new, &(preformatted(&change) + &others)));
    }
    out + "</section>\n"
}

/// Returns a finding: its title, its place, the figures, why it matters, and the fix.
fn article(finding: &Finding, source: &str, explains: bool, change: &str) -> String {
    let rule = finding.rule();
    let class = if rule.severity() == Severity::Warning { "finding warning" } else { "finding" };
    let (severity, code, title) = (rule.severity().name(), rule.code(), escaped(rule.title()));
    let facts: String = finding.facts().iter().map(|fact| format!("<li>{}</li>\n", escaped(fact))).collect();
    let why = if explains { format!("<p>Why: {}.</p>\n", escaped(rule.rationale())) } else { String::new() };
    let help = escaped(&finding.suggestion().to_string());
    format!(
        "<article class=\"{class}\">\n<h3>{title} <small>{severity} {code}</small></h3>\n\
         {source}<ul>\n{facts}</ul>\n{why}<p><b>Help:</b> {help}</p>\n{change}</article>\n"
    )
}
