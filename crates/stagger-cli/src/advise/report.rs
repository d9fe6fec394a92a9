use stagger_core::text::Compact;
use stagger_sim::advise::{Advice, Candidate, ParetoFront, Recommendation, RecommendedGuards, rust_code};

use super::json::toml;
use crate::output::error::CliError;
use crate::plot::{Column, RenderOptions, Unit, paragraph, table};

/// Columns of the table of Pareto-optimal policies. The policies are similar, so the table shows only the settings in
/// which they differ.
const COLUMNS: [Column; 6] = [
    Column::left(""),
    Column::right("peak in 1s"),
    Column::right("99% recovered"),
    Column::right("attempts per client"),
    Column::right("recovered").optional(),
    Column::left("differing settings").optional(),
];

/// Returns the advice as text for a terminal.
pub(super) fn report(advice: &Advice, options: RenderOptions) -> Result<String, CliError> {
    let verdict = match advice.recommendation() {
        Recommendation::Retry => "retry with this policy:",
        Recommendation::Hedge => "do not retry; hedge requests",
        _ => "do not retry",
    };
    let mut out = paragraph(verdict, "", options);
    if let Some(policy) = advice.policy() {
        out.push_str(&paragraph(&format!("  {policy}"), "    ", options));
    }
    if advice.guards() == RecommendedGuards::BudgetAndBreaker {
        out.push_str(&paragraph(
            "  guarded by a retry budget that all calls share, and a circuit breaker",
            "  ",
            options,
        ));
    }
    out.push_str("\nreasons\n");
    for reason in advice.reasons() {
        let answer = reason.answer.as_deref().unwrap_or("not specified");
        let text = format!("  {} {answer}: {}", reason.question.name(), reason.conclusion);
        out.push_str(&paragraph(&text, "    ", options));
    }
    if let Some(front) = advice.front() {
        out.push_str(&front_section(front, options));
    }
    if let Some(policy) = advice.policy() {
        // Not wrapped, so that it can be pasted.
        out.push_str(&format!("\nTOML\n{}", indented(&toml(policy)?)));
        if let Some(rust) = rust_code(policy) {
            out.push_str(&format!("\nRust\n{}", indented(&rust)));
        }
    }
    Ok(options.glyphs.transliterate(&out).into_owned())
}

fn front_section(front: &ParetoFront, options: RenderOptions) -> String {
    let text = format!(
        "Pareto-optimal policies after a mass disconnect ({}, {} clients, {} policies tried; full recovery takes at least \
         {})",
        if front.runs == 1 { "1 run".to_owned() } else { format!("means of {} runs", front.runs) },
        Unit::Count.label(front.simulated_clients as f64),
        front.tried_policies,
        Compact(front.min_recovery_time),
    );
    let rows = front.candidates.iter().map(|candidate| row(candidate, front));
    format!("\n{}{}", paragraph(&text, "  ", options), table(&COLUMNS, rows, options))
}

fn row(candidate: &Candidate, front: &ParetoFront) -> Vec<String> {
    let predicted = &candidate.predicted;
    vec![
        if candidate == front.best() { "=>" } else { "" }.to_owned(),
        Unit::Count.label(predicted.peak_second.round()),
        predicted.recovery.map_or_else(|| "never".to_owned(), |recovery| format!("{:.1}", Compact(recovery))),
        format!("{:.2}", predicted.attempts_per_client),
        format!("{:.1}%", 100.0 * predicted.recovered_ratio),
        differing_settings(candidate, front),
    ]
}

/// Returns the settings of a policy that not all candidates share.
fn differing_settings(candidate: &Candidate, front: &ParetoFront) -> String {
    let lines: Vec<String> = front.candidates.iter().map(|other| other.policy.to_string()).collect();
    let line = candidate.policy.to_string();
    let differs = |setting: &&str| !lines.iter().all(|line| line.split(' ').any(|other| other == *setting));
    line.split(' ').filter(differs).collect::<Vec<_>>().join(" ")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
