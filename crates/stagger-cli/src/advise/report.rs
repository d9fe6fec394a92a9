use stagger_core::text::Compact;
use stagger_sim::advise::{Advice, Candidate, Front, Guarding, Verdict, rust};

use super::json::toml;
use crate::error::CliError;
use crate::plot::{Align, Column, Keep, RenderOptions, Unit, paragraph, table};

/// The columns of the front. Its policies are much alike: what they have in common stands above.
const COLUMNS: [Column; 6] = [
    Column { heading: "", align: Align::Left, keep: Keep::Always },
    Column { heading: "peak in 1s", align: Align::Right, keep: Keep::Always },
    Column { heading: "99% back", align: Align::Right, keep: Keep::Always },
    Column { heading: "attempts each", align: Align::Right, keep: Keep::Always },
    Column { heading: "back", align: Align::Right, keep: Keep::WithRoom },
    Column { heading: "differs in", align: Align::Left, keep: Keep::WithRoom },
];

/// What people read.
///
/// # Errors
/// The policy cannot be written as TOML.
pub(super) fn report(advice: &Advice, look: RenderOptions) -> Result<String, CliError> {
    let verdict = match advice.verdict() {
        Verdict::Retry => "retry, by this policy:",
        Verdict::Hedge => "do not retry; hedge",
        _ => "do not retry",
    };
    let mut out = paragraph(verdict, "", look);
    if let Some(policy) = advice.policy() {
        out.push_str(&paragraph(&format!("  {policy}"), "    ", look));
    }
    if advice.guarding() == Guarding::BudgetAndBreaker {
        out.push_str(&paragraph(
            "  with a budget for the retries of all calls together, and a circuit breaker",
            "  ",
            look,
        ));
    }
    out.push_str("\nbecause\n");
    for reason in advice.reasons() {
        let answer = reason.answer.as_deref().unwrap_or("not said");
        let text = format!("  {} {answer}: {}", reason.question.name(), reason.therefore);
        out.push_str(&paragraph(&text, "    ", look));
    }
    if let Some(front) = advice.front() {
        out.push_str(&computed(front, look));
    }
    if let Some(policy) = advice.policy() {
        // What is to be pasted is not broken over lines.
        out.push_str(&format!("\nTOML\n{}", indented(&toml(policy)?)));
        if let Some(rust) = rust(policy) {
            out.push_str(&format!("\nRust\n{}", indented(&rust)));
        }
    }
    Ok(look.glyphs.transliterate(&out).into_owned())
}

fn computed(front: &Front, look: RenderOptions) -> String {
    let text = format!(
        "if all fail at once ({} with {} clients; {} policies tried; \
         all are back after {} at the soonest)",
        if front.runs == 1 { "one run".to_owned() } else { format!("means of {} runs", front.runs) },
        Unit::Count.label(front.simulated as f64),
        front.tried,
        Compact(front.least_recovery),
    );
    let rows: Vec<_> = front.candidates.iter().map(|candidate| row(candidate, front)).collect();
    format!("\n{}{}", paragraph(&text, "  ", look), table(&COLUMNS, &rows, look))
}

fn row(candidate: &Candidate, front: &Front) -> Vec<String> {
    let predicted = &candidate.predicted;
    vec![
        if candidate == front.best() { "=>" } else { "" }.to_owned(),
        Unit::Count.label(predicted.peak_second.round()),
        predicted.recovery.map_or_else(|| "never".to_owned(), |recovery| format!("{:.1}", Compact(recovery))),
        format!("{:.2}", predicted.attempts_per_client),
        format!("{:.1}%", 100.0 * predicted.back),
        own(candidate, front),
    ]
}

/// The settings of a policy that not all have.
fn own(candidate: &Candidate, front: &Front) -> String {
    let lines: Vec<String> = front.candidates.iter().map(|other| other.policy.to_string()).collect();
    let line = candidate.policy.to_string();
    let differs = |setting: &&str| !lines.iter().all(|line| line.split(' ').any(|other| other == *setting));
    line.split(' ').filter(differs).collect::<Vec<_>>().join(" ")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
