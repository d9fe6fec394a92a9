//! The advice as text for a terminal.

use stagger_core::Policy;
use stagger_core::text::Compact;
use stagger_lint::advise::{Advice, Candidate, GuardFigures, GuardTrial, ParetoFront, Prediction, Recommendation};
use stagger_sim::outage::{DefaultGuards, Verdict};
use stagger_terminal::output::error::CliError;
use stagger_terminal::plot::{Column, RenderOptions, Unit, paragraph, table};

use super::commands;
use super::json::{rust, toml};

/// Columns of the table of outages.
const OUTAGES: [Column; 5] = [
    Column::right("outage"),
    Column::right("peak in 1s"),
    Column::right("99% recovered after it"),
    Column::right("attempts per client"),
    Column::right("recovered"),
];

/// Columns of the table of Pareto-optimal policies. The table shows the settings that were searched, in short.
const COLUMNS: [Column; 6] = [
    Column::left(""),
    Column::right("peak in 1s"),
    Column::right("99% recovered"),
    Column::right("attempts"),
    Column::right("recovered").optional(),
    Column::left("delay or base..cap, multiplier, jitter").optional(),
];

/// Returns the advice in a few words.
pub(super) fn verdict(advice: &Advice) -> &'static str {
    match advice.recommendation() {
        Recommendation::Retry => "retry with this policy:",
        Recommendation::Hedge => "do not retry; hedge requests",
        _ => "do not retry",
    }
}

/// Returns the commands that show what the advice says.
pub(super) fn commands_shown(advice: &Advice, policy: &Policy, seed: u64) -> Vec<String> {
    let mut shown = Vec::new();
    if let Some(front) = advice.front() {
        shown.extend(commands::disconnect(front, seed));
    }
    if let Some(trial) = advice.guard_trial() {
        shown.extend(commands::guards(trial, policy, seed));
    }
    shown
}

/// Returns what `check` warns of in the advice, and why it is the advice all the same.
pub(super) fn warnings(advice: &Advice) -> Vec<String> {
    let why = match advice.front() {
        None => "nothing was simulated that could help",
        Some(front) if front.is_clean => "no guard that was tried helps",
        Some(_) => "it warns of every policy that was tried",
    };
    let told = advice.warnings().iter().map(|found| {
        let (rule, help) = (found.rule(), found.suggestion());
        format!("check warns: {} {}: {}; {why}: {help}", rule.code(), rule.name(), rule.title())
    });
    told.collect()
}

/// Returns the advice as text for a terminal.
pub(super) fn report(advice: &Advice, seed: u64, options: RenderOptions) -> Result<String, CliError> {
    let mut out = paragraph(verdict(advice), "", options);
    if let Some(policy) = advice.policy() {
        out.push_str(&paragraph(&format!("  {policy}"), "    ", options));
    }
    if advice.guards() != DefaultGuards::None {
        let text = format!("  guarded in each process by {}", advice.guards().name());
        out.push_str(&paragraph(&text, "  ", options));
    }
    for text in warnings(advice) {
        out.push_str(&paragraph(&format!("  {text}"), "    ", options));
    }
    out.push_str("\nreasons\n");
    for reason in advice.reasons() {
        let answer = reason.answer.as_deref().unwrap_or("not specified");
        let text = format!("  {} {answer}: {}", reason.question.name(), reason.conclusion);
        out.push_str(&paragraph(&text, "    ", options));
    }
    if let Some(trial) = advice.guard_trial() {
        out.push_str(&paragraph(&guard_text(trial), "    ", options));
    }
    if let Some(front) = advice.front() {
        out.push_str(&front_section(front, options));
    }
    if let Some(policy) = advice.policy() {
        // Not wrapped, so that it can be pasted.
        out.push_str(&format!("\nTOML\n{}", indented(&toml(policy, advice.guards())?)));
        if let Some(rust) = rust(policy, advice.guards()) {
            out.push_str(&format!("\nRust\n{}", indented(&rust)));
        }
        let shown = commands_shown(advice, policy, seed);
        if !shown.is_empty() {
            out.push_str(&format!(
                "\nsimulated by (--json has all figures; its t99_s includes the outage, recovered \
                 is connected / clients)\n{}",
                indented(&shown.join("\n"))
            ));
        }
    }
    Ok(options.glyphs.transliterate(&out).into_owned())
}

pub(super) fn guard_text(trial: &GuardTrial) -> String {
    let succeed = |figures: &GuardFigures| format!("({:.1}% of the requests succeed)", 100.0 * figures.success_ratio);
    let told = |figures: &GuardFigures| {
        let state = match (figures.verdict, figures.recovery) {
            (Verdict::NeverFell, _) => "stays up".to_owned(),
            (Verdict::Relapsed { is_up: true, .. }, _) => "falls again after it has recovered".to_owned(),
            (_, Some(recovery)) => format!("recovers {:.1} after it", Compact(recovery)),
            _ => format!("is down at the end of the simulation, at {:.1}", Compact(trial.horizon)),
        };
        format!("{state} {}", succeed(figures))
    };
    let start = format!(
        "  steady traffic: at {:.0}% load, after a stall from {} to {}, a server of such clients {} without guards",
        100.0 * trial.rate / trial.capacity,
        Compact(trial.start),
        Compact(trial.start.saturating_add(trial.stall)),
        told(&trial.without)
    );
    match trial.guards {
        DefaultGuards::None if !trial.tried => start,
        DefaultGuards::None if trial.without.is_recovered() => {
            format!("{start}, and no default budget or breaker in each client improves that by 2% of the requests")
        }
        DefaultGuards::None => format!(
            "{start}, and does not recover with a default budget or breaker in each client that lets a single call \
             make all its attempts; retry less, or reject early"
        ),
        guards => format!("{start}, and {} with {} in each client", told(&trial.with), guards.name()),
    }
}

fn front_section(front: &ParetoFront, options: RenderOptions) -> String {
    let best = front.best();
    let several = best.by_outage.len() > 1;
    let mut out = String::new();
    if several {
        let rows = best.by_outage.iter().map(|(outage, predicted)| {
            let mut row = vec![Compact(*outage).to_string()];
            row.extend(figures(predicted));
            row
        });
        out.push_str("\nthe recommended policy in each outage\n");
        out.push_str(&table(&OUTAGES, rows, options));
    }
    let text = format!(
        "Pareto-optimal policies after a mass disconnect{} ({}, {} clients, {} policies tried; full recovery takes at \
         least {:.1} after the outage)",
        if several { ", at worst" } else { "" },
        if front.runs == 1 { "1 run".to_owned() } else { format!("means of {} runs", front.runs) },
        Unit::Count.label(front.simulated_clients as f64),
        front.tried_policies,
        Compact(front.min_recovery_time),
    );
    let rows = front.candidates.iter().map(|candidate| row(candidate, front));
    out.push_str(&format!("\n{}{}", paragraph(&text, "  ", options), table(&COLUMNS, rows, options)));
    out.push_str(&paragraph(&front.searched, "  ", options));
    out
}

pub(super) fn figures(predicted: &Prediction) -> [String; 4] {
    [
        Unit::Count.label(predicted.peak_second.round()),
        match predicted.recovery {
            Some(recovery) => format!("{:.1}", Compact(recovery)),
            None => "never".to_owned(),
        },
        format!("{:.2}", predicted.attempts_per_client),
        format!("{:.1}%", 100.0 * predicted.recovered_ratio),
    ]
}

fn row(candidate: &Candidate, front: &ParetoFront) -> Vec<String> {
    let mut row = vec![if candidate == front.best() { "=>" } else { "" }.to_owned()];
    row.extend(figures(&candidate.predicted));
    row.push(settings(&candidate.policy));
    row
}

/// Returns the searched settings of a policy in short: `20s..1m x3.1 equal spread=58s`, or `20s equal` for a constant
/// delay.
pub(super) fn settings(policy: &Policy) -> String {
    let line = policy.to_string();
    let value = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).unwrap_or("");
    let mut text = match (value("range"), value("cap")) {
        ("", "") => value("base").to_owned(),
        ("", cap) => format!("{}..{cap}", value("base")),
        (range, _) => range.to_owned(),
    };
    let mut add = |prefix: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!(" {prefix}{value}"));
        }
    };
    add("x", value("multiplier"));
    add("", value("jitter"));
    add("spread=", value("spread"));
    add("attempts=", if value("max-attempts") == "inf" { "" } else { value("max-attempts") });
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
