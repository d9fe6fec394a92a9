use std::path::Path;

use stagger_config::{Entry, EntryKind, read};

use super::find::Found;
use super::read::text;
use crate::output::error::CliError;

/// A policy that a configuration of another system has.
pub(crate) struct ConfigPolicy {
    /// The path within the file, and the line: `VirtualService/reviews.http[0]`.
    pub(crate) path: String,
    /// The file, the line, and the system.
    pub(crate) label: String,
    /// The policy, in one line of the policy language.
    pub(crate) policy: String,
}

/// Returns the policies of a file by which calls, steps and restarts are repeated: all of them, or the one whose path is
/// `entry`, or contains it.
pub(crate) fn policies_of(file: &Path, entry: Option<&str>) -> Result<Vec<ConfigPolicy>, CliError> {
    let name = file.display().to_string();
    let text = text(&Found { path: file.to_owned(), is_named: true }, &name)?;
    let entries =
        read(&text, None).map_err(|error| CliError::usage(format_args!("{name}:{}: {error}", error.position())))?;
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
    let policy = entry.policy().filter(|_| is_repeated)?;
    let label = format!("{name}:{}: {} ({})", entry.span.start.line, entry.path, entry.format);
    Some(ConfigPolicy { path: entry.path.clone(), label, policy: policy.to_string() })
}
