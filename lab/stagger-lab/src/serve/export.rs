use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use stagger_core::Policy;
use stagger_lint::advise::rust_code;
use stagger_sim::Progress;

use super::jobs::Jobs;
use super::question::{Question, RaceQuestion, parse_policy};
use super::reply::Failure;
use super::test_code::test_code;
use stagger_report::storm::{Format, rendered};
use stagger_terminal::output::error::CliError;

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
    /// The report of `stagger simulate -o`.
    Report,
    /// The document of `stagger simulate --json`.
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
            let place = jobs.admit()?;
            let run = place.run(Arc::new(Progress::new()), move |progress| {
                let Some(storm) = race.run(progress)? else { return Ok(Vec::new()) };
                match format {
                    ExportFormat::Test => Ok(test_code(&race.command(), &policy, &storm).into_bytes()),
                    ExportFormat::Json => rendered(&storm, Format::Json, &race.command()),
                    _ => rendered(&storm, Format::Html, &race.command()),
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
            "use stagger::Policy;\n\n/// Returns the policy, which only the policy language can express.\npub fn policy() -> Policy \
             {{\n    {:?}.parse().expect(\"a policy that stagger has written\")\n}}\n",
            policy.to_string()
        ),
    }
}
