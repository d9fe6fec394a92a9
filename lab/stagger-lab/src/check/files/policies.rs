//! The policies of a configuration, as `stagger simulate` and `stagger plan` use them.

use core::time::Duration;
use std::path::Path;

use stagger_config::{Entry, EntryKind, Limit, RetryBudget, read};
use stagger_core::text::Compact;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;

use super::read::{Found, text};
use super::refused::refusal;

/// A policy that a configuration of another system has.
#[derive(Debug)]
pub struct ConfigPolicy {
    /// The path within the file, and the line: `VirtualService/reviews.http[0]`.
    pub path: String,
    /// The file, the line, the system, and what limits calls beside the policy.
    pub label: String,
    /// The policy, in one line of the policy language.
    pub policy: String,
    /// The time limit of an attempt.
    pub attempt: Option<Duration>,
    /// The time limit of a call with all its attempts.
    pub overall: Option<Duration>,
    /// What limits the retries of all calls together, if the file or its system says so.
    pub budget: Option<RetryBudget>,
    /// The budget of a client process, as `--guards` has it.
    pub guards: Option<String>,
}

/// Returns the policies of a file by which calls, steps and restarts are repeated: all of them, or the one whose path
/// is `entry`, or contains it.
pub(crate) fn policies_of(file: &Path, entry: Option<&str>) -> Result<Vec<ConfigPolicy>, CliError> {
    let name = path_shown(file);
    let text = text(&Found { path: file.to_owned(), is_named: true }, &name)?;
    let entries = read(&text, None)
        .map_err(|error| CliError::usage(format_args!("{name}:{}", refusal(file, &text, None, &error))))?;
    let all: Vec<_> = entries.iter().filter_map(|entry| policy(&name, entry)).collect();
    let Some(wanted) = entry else {
        return if all.is_empty() {
            Err(CliError::usage(format_args!(
                "{name}: nothing is repeated by a policy that the file states; `stagger check {name}` says what it has"
            )))
        } else {
            Ok(all)
        };
    };
    let paths: Vec<_> = all.iter().map(|policy| policy.path.clone()).collect();
    let is_exact = paths.iter().any(|path| path == wanted);
    let found: Vec<_> = all
        .into_iter()
        .filter(|policy| if is_exact { policy.path == wanted } else { policy.path.contains(wanted) })
        .collect();
    if found.is_empty() {
        let paths = paths.join(", ");
        return Err(CliError::usage(format_args!("--entry: {name} has no `{wanted}`; it has {paths}")));
    }
    Ok(found)
}

fn policy(name: &str, entry: &Entry) -> Option<ConfigPolicy> {
    let is_repeated = matches!(entry.kind, EntryKind::Call | EntryKind::Fetch | EntryKind::Step | EntryKind::Restart);
    if !is_repeated {
        return None;
    }
    let policy = entry.policy()?;
    let settings = &entry.settings;
    let overall = settings.timeout.and_then(|timeout| timeout.value.at());
    // A limit that is only that of the whole call says nothing about attempts.
    let attempt =
        settings.attempt_timeout.and_then(|timeout| timeout.value.at()).filter(|limit| Some(*limit) != overall);
    let budget = settings.budget.map_or(RetryBudget::Unlimited, |budget| budget.value);
    let mut limits = Vec::new();
    if let Some(limit) = attempt {
        limits.push(format!("attempts of at most {}", Compact(limit)));
    }
    if let Some(limit) = overall {
        limits.push(format!("all within {}", Compact(limit)));
    }
    if budget != RetryBudget::Unlimited {
        limits.push(format!("budget: {budget}"));
    }
    let system = entry.format.to_string();
    let about = if limits.is_empty() { system } else { format!("{system}; {}", limits.join(", ")) };
    // A single attempt has no retries that a limit of all could end.
    let is_single = settings.attempts.is_some_and(|attempts| attempts.value == Limit::At(1));
    Some(ConfigPolicy {
        path: entry.path.clone(),
        label: format!("{name}:{}: {} ({about})", entry.span.start.line, entry.path),
        policy: policy.to_string(),
        attempt,
        overall: if is_single { None } else { overall },
        budget: settings.budget.map(|budget| budget.value),
        guards: guards(budget),
    })
}

/// Returns a budget as `--guards` has it.
fn guards(budget: RetryBudget) -> Option<String> {
    match budget {
        RetryBudget::Concurrent(retries) => Some(format!("concurrent ratio=0 floor={retries}")),
        RetryBudget::ShareOfActive { ratio, least } => Some(format!("concurrent ratio={ratio} floor={least}")),
        RetryBudget::Ratio { ratio, least_per_second, period } => {
            Some(format!("window ttl={} ratio={ratio} min-per-second={least_per_second}", Compact(period)))
        }
        RetryBudget::Throttle { tokens, ratio } => Some(format!("throttle max-tokens={tokens} token-ratio={ratio}")),
        RetryBudget::Tokens { capacity } => Some(format!("tokens capacity={capacity}")),
        _ => None,
    }
}
