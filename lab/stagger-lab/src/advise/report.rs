//! The report of the advice.

use stagger_core::Policy;
use stagger_core::text::Compact;
use stagger_lint::advise::{Advice, Candidate, GuardFigures, GuardTrial, ParetoFront, Prediction, Recommendation};
use stagger_report::page::delays;
use stagger_report::report::{Chart, Part, Report, Table};
use stagger_sim::outage::{DefaultGuards, Verdict};
use stagger_terminal::output::error::CliError;
use stagger_terminal::plot::{Axis, Figure, Hue, Point, Series, Shape, Unit};

use super::commands;
use super::json::{document, rust, toml};

/// Returns the report.
pub(super) fn report(advice: &Advice, seed: u64) -> Result<Report, CliError> {
    let mut parts = vec![Part::Answer];
    parts.extend(warnings(advice).map(Part::Text));
    // One point has nothing to be compared with.
    let competing = advice.front().filter(|front| front.candidates.len() > 1);
    parts.extend(competing.map(|front| Part::Chart(trade_off(front))));
    let reasons = advice.reasons().iter().map(|reason| {
        let answer = reason.answer.as_deref().unwrap_or("not specified");
        (format!("{} {answer}", reason.question.name()), reason.conclusion.clone())
    });
    let trial = advice.guard_trial().map(|trial| ("steady traffic".to_owned(), guard_text(trial)));
    parts.push(Part::Reasons(reasons.chain(trial).collect()));
    parts.extend(advice.front().into_iter().flat_map(tables));
    if let Some(policy) = advice.policy() {
        parts.push(Part::Pictures(delays(&[("the recommended policy", policy)])));
        parts.push(Part::Code("TOML", toml(policy, advice.guards())?));
        parts.extend(rust(policy, advice.guards()).map(|rust| Part::Code("Rust", rust)));
        let shown = commands_shown(advice, policy, seed);
        if !shown.is_empty() {
            parts.push(Part::Code(
                "simulated by (--json has all figures; its t99_s includes the outage)",
                shown.join("\n"),
            ));
        }
    }
    Ok(Report {
        heading: "Retries, advised",
        scenario: scenario(advice),
        answer: vec![answer(advice)],
        parts,
        document: document(advice, seed)?,
        ..Report::default()
    })
}

/// Returns the advice in a sentence.
fn answer(advice: &Advice) -> String {
    let mut text = match advice.recommendation() {
        Recommendation::Retry => "retry",
        Recommendation::Hedge => "do not retry; hedge requests",
        _ => "do not retry",
    }
    .to_owned();
    if let Some(policy) = advice.policy() {
        text.push_str(&format!(" with {policy}"));
    }
    if advice.guards() != DefaultGuards::None {
        text.push_str(&format!(", guarded in each process by {}", advice.guards().name()));
    }
    if let Some(front) = advice.front() {
        let best = &front.best().predicted;
        let [peak, recovery, attempts, _] = figures(best);
        let worst = match front.best().by_outage.len() {
            1 => String::new(),
            several => format!(" (the worst of {several} outages)"),
        };
        let back = match best.recovery {
            Some(_) => format!("99% are back {recovery} after the outage"),
            None => "fewer than 99% come back".to_owned(),
        };
        text.push_str(&format!(
            ": after a mass disconnect {peak} attempts arrive in the busiest second, each client makes {attempts} on \
             average, and {back}{worst}"
        ));
    }
    text
}

fn scenario(advice: &Advice) -> String {
    let answered = advice.reasons().iter().filter_map(|reason| {
        let answer = reason.answer.as_deref()?;
        Some(format!("{} {answer}", reason.question.name()))
    });
    let answered: Vec<String> = answered.collect();
    if answered.is_empty() { "advice without any answer".to_owned() } else { answered.join(", ") }
}

/// Returns the commands that show what the advice says.
fn commands_shown(advice: &Advice, policy: &Policy, seed: u64) -> Vec<String> {
    let disconnect = advice.front().and_then(|front| commands::disconnect(front, seed));
    let guards = advice.guard_trial().and_then(|trial| commands::guards(trial, policy, seed));
    disconnect.into_iter().chain(guards).collect()
}

/// Returns what `check` warns of in the advice, and why it is the advice all the same.
fn warnings(advice: &Advice) -> impl Iterator<Item = String> {
    let why = match advice.front() {
        None => "nothing was simulated that could help",
        Some(front) if front.is_clean => "no guard that was tried helps",
        Some(_) => "it warns of every policy that was tried",
    };
    advice.warnings().iter().map(move |found| {
        let (rule, help) = (found.rule(), found.suggestion());
        format!("check warns: {} {}: {}; {why}: {help}", rule.code(), rule.name(), rule.title())
    })
}

fn guard_text(trial: &GuardTrial) -> String {
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
        "at {:.0}% load, after a stall from {} to {}, a server of such clients {} without guards",
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

/// The headings of [`figures`], each with whether it is left out of a narrow table.
const HEADS: [(&str, bool); 4] =
    [("peak in 1s", false), ("99% recovered after it", true), ("attempts per client", true), ("recovered", true)];

fn figures(predicted: &Prediction) -> [String; 4] {
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

/// Returns the tables of the recommended policy in each outage, if there are several, and of the policies that compete.
fn tables(front: &ParetoFront) -> Vec<Part> {
    let heads = |first| [(first, false)].into_iter().chain(HEADS).collect();
    let row = |name: String, predicted| [name].into_iter().chain(figures(predicted)).collect();
    let by_outage = &front.best().by_outage;
    let mut tables = Vec::new();
    if by_outage.len() > 1 {
        let rows = by_outage.iter().map(|(outage, predicted)| row(Compact(*outage).to_string(), predicted));
        let title = "the recommended policy in each outage".to_owned();
        tables.push(Part::Table(Table { title, heads: heads("outage"), rows: rows.collect(), best: None }));
    }
    let title = format!(
        "Pareto-optimal policies after a mass disconnect{} ({}, {} clients, {} policies tried; full recovery takes at \
         least {:.1} after the outage)",
        if by_outage.len() > 1 { ", at worst" } else { "" },
        if front.runs == 1 { "1 run".to_owned() } else { format!("means of {} runs", front.runs) },
        Unit::Count.label(front.simulated_clients as f64),
        front.tried_policies,
        Compact(front.min_recovery_time),
    );
    let candidates = front.candidates.iter();
    let rows = candidates.clone().map(|candidate| row(settings(&candidate.policy), &candidate.predicted)).collect();
    let best = candidates.clone().position(|candidate| candidate == front.best());
    tables.push(Part::Table(Table { title, heads: heads("delay or base..cap, multiplier, jitter"), rows, best }));
    tables.push(Part::Text(front.searched.clone()));
    tables
}

/// Returns the picture of the policies that compete.
fn trade_off(front: &ParetoFront) -> Chart {
    let point = |candidate: &Candidate| {
        let recovery = candidate.predicted.recovery?;
        Some(Point { x: recovery.as_secs_f64(), y: candidate.predicted.peak_second })
    };
    let best = point(front.best()).into_iter().collect();
    let others = front.candidates.iter().filter(|candidate| *candidate != front.best()).filter_map(point).collect();
    let figure = Figure {
        title: "Peak by recovery".to_owned(),
        description: "The highest number of attempts in one second of each policy, by the time in which 99% of the \
                      clients are back."
            .to_owned(),
        x: Axis::new("99% back after", Unit::Seconds).including(0.0),
        y: Axis::new("peak in a second", Unit::Count).including(0.0),
        series: vec![
            Series::light("others that are better in some figure", Hue::nth(0), Shape::Points(others)),
            Series::strong("recommended", Hue::VERMILION, Shape::Points(best)),
        ],
    };
    Chart { slug: "trade-off", title: "Why this one", figures: vec![figure], ..Chart::default() }
}

/// Returns the searched settings of a policy in short: `20s..1m x3.1 equal spread=58s`, or `20s equal` for a constant
/// delay.
fn settings(policy: &Policy) -> String {
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
