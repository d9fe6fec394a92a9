//! A race and its policies as files.

use core::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use stagger_core::Policy;
use stagger_lint::advise::rust_code;
use stagger_report::output::Format;
use stagger_report::storm::report;
use stagger_sim::Progress;
use stagger_sim::storm::{
    FirstAttemptSpec, ReconnectReport, ReconnectSpec, RetryAfterSpec, RunFigures, ScenarioSpec, StormReport,
};
use stagger_terminal::output::error::CliError;

use super::limits::{Jobs, Work};
use super::question::{Question, RaceQuestion, parse_policy};
use super::reply::Failure;

/// What to export: a race, or its last policy.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportQuestion {
    format: ExportFormat,
    race: RaceQuestion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ExportFormat {
    /// The report of `stagger simulate reconnect -o`.
    Report,
    /// The document of `stagger simulate reconnect --json`.
    Json,
    /// The policy as a file for `--policy @FILE`.
    Toml,
    /// The policy as Rust.
    Rust,
    /// A test in Rust that the policy keeps its figures.
    Test,
}

impl ExportFormat {
    /// Returns the name of the file and its media type.
    const fn file(self) -> (&'static str, &'static str) {
        match self {
            Self::Report => ("storm.html", "text/html; charset=utf-8"),
            Self::Json => ("storm.json", "application/json"),
            Self::Toml => ("policy.toml", "application/toml"),
            Self::Rust => ("policy.rs", "text/plain; charset=utf-8"),
            Self::Test => ("storm_test.rs", "text/plain; charset=utf-8"),
        }
    }
}

/// Answers with a file.
pub(super) async fn answer(
    State(jobs): State<Arc<Jobs>>,
    Question(ExportQuestion { format, race: question }): Question<ExportQuestion>,
) -> Result<Response, Failure> {
    let race = question.race()?;
    let text = question.policies.last().map_or("", |text| text.trim());
    let policy = parse_policy(text)?;
    let content = match format {
        ExportFormat::Toml => toml(&policy)?.into_bytes(),
        ExportFormat::Rust => rust(&policy).into_bytes(),
        ExportFormat::Report | ExportFormat::Json | ExportFormat::Test => {
            let place = jobs.admit(Work::Simulation)?;
            let run = place.run(Arc::new(Progress::new()), move |progress| {
                let Some(storm) = race.run(progress)? else { return Ok(Vec::new()) };
                match format {
                    ExportFormat::Test => Ok(test_code(&race.command(), &policy, &storm).into_bytes()),
                    ExportFormat::Json => report(&storm)?.rendered(Format::Json, &race.command()),
                    _ => report(&storm)?.rendered(Format::Html, &race.command()),
                }
            });
            run.await?.map_err(|error: CliError| Failure::from(error))?
        }
    };
    let (name, media_type) = format.file();
    let headers =
        [(CONTENT_TYPE, media_type.to_owned()), (CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\""))];
    Ok((headers, content).into_response())
}

/// Returns the policy as TOML.
fn toml(policy: &Policy) -> Result<String, Failure> {
    let text = toml::to_string(policy).map_err(Failure::wrong)?;
    Ok(format!("# {policy}\n{text}"))
}

/// Returns the policy as an expression of Rust.
fn rust(policy: &Policy) -> String {
    match rust_code(policy) {
        Some(code) => format!(
            "use stagger::{{Jitter, Policy, Ratio, policy}};\n\n/// {policy}\npub const POLICY: Policy = {code};\n"
        ),
        None => format!(
            "use stagger::Policy;\n\n/// Returns the policy, which only the policy language can express.\n\
             pub fn policy() -> Policy {{\n    {:?}.parse().expect(\"a policy that stagger has written\")\n}}\n",
            policy.to_string()
        ),
    }
}

/// Returns a test in Rust that a policy has the figures of the last strategy, or better ones, in the same scenario.
/// `command` is the command line that computes them.
fn test_code(command: &str, policy: &Policy, storm: &StormReport) -> String {
    let run = storm.strategies.last().and_then(|last| last.runs.first());
    let (Some(run), ScenarioSpec::Reconnect(spec)) = (run, &storm.scenario) else { return String::new() };
    let RunFigures::Reconnect(figures) = &run.figures else { return String::new() };
    let scenario = scenario(spec);
    let of_reconnect =
        [("FirstAttempt, ", "FirstAttempt::"), ("ReconnectScenario", ""), (", RetryAfter", "RetryAfter::")];
    let used = of_reconnect.iter().filter(|(_, used)| scenario.contains(used));
    let names: String = used.map(|(name, _)| *name).collect();
    let names = if names.contains(", ") { format!("{{{names}}}") } else { names };
    let body = format!(
        "    let policy: Policy = {:?}.parse()?;\n    let scenario = {scenario}\n        .build()?;\n    \
         StormTest::run_with_seed(&scenario, &policy, Seed::new({})){};\n    Ok(())\n",
        policy.to_string(),
        run.seed,
        claims(figures)
    );
    let durations = if body.contains("Duration::") { "use core::time::Duration;\n\n" } else { "" };
    format!(
        "//! The claims are the figures of: {}\n\n{durations}use stagger_core::{{Policy, Seed}};\nuse \
         stagger_sim::reconnect::{names};\nuse stagger_sim::testing::StormTest;\n\n#[test]\nfn \
         clients_that_lose_their_connections_come_back_in_time() -> Result<(), Box<dyn core::error::Error>> \
         {{\n{body}}}\n",
        command.replace(char::is_control, " ")
    )
}

fn claims(figures: &ReconnectReport) -> String {
    let mut text = format!(
        "\n        .peak_second_at_most({})\n        .attempts_per_client_at_most({:?})",
        figures.peak_1s,
        // Rounded up, because the assertion compares exact values.
        (figures.attempts_per_client * 1e3).ceil() / 1e3
    );
    if let Some(p99) = figures.recovered_p99_s {
        let _ = write!(text, "\n        .recovered_p99_within({})", duration(p99));
    }
    if figures.t100_s.is_some() {
        text.push_str("\n        .all_clients_recover()");
    }
    text
}

/// Returns a length in seconds as code, rounded up to microseconds.
fn duration(seconds: f64) -> String {
    // Microseconds are exact in the document, except for the last bit of the floating-point number.
    match (seconds * 1e6 - 1e-3).ceil().max(0.0) as u64 {
        micros if micros % 1_000_000 == 0 => format!("Duration::from_secs({})", micros / 1_000_000),
        micros if micros % 1_000 == 0 => format!("Duration::from_millis({})", micros / 1_000),
        micros => format!("Duration::from_micros({micros})"),
    }
}

/// Returns the code that builds a scenario.
fn scenario(spec: &ReconnectSpec) -> String {
    let mut text = format!("ReconnectScenario::builder({})", spec.clients);
    let mut set = |call: String| {
        let _ = write!(text, "\n        .{call}");
    };
    set(format!("rate({:?})", spec.rate));
    set(format!("backlog({})", spec.backlog));
    set(format!("one_way({}, {})", duration(spec.one_way_min_s), duration(spec.one_way_max_s)));
    set(format!("disconnect_window({})", duration(spec.disconnect_window_s)));
    set(format!("down_for({})", duration(spec.down_for_s)));
    set(format!("horizon({})", duration(spec.horizon_s)));
    if spec.first_attempt == FirstAttemptSpec::Immediate {
        set("first_attempt(FirstAttempt::Immediate)".to_owned());
    }
    match (spec.retry_after, spec.retry_after_s) {
        (RetryAfterSpec::Fixed, Some(after)) => set(format!("retry_after(RetryAfter::Fixed({}))", duration(after))),
        (RetryAfterSpec::Staggered, _) => set("retry_after(RetryAfter::Staggered)".to_owned()),
        (RetryAfterSpec::Reservations, _) => set("retry_after(RetryAfter::Reservations)".to_owned()),
        _ => {}
    }
    if let Some(crash_loop) = spec.crash_loop {
        set(format!("crash_loop({}, {:?})", crash_loop.most, crash_loop.above));
    }
    text
}
