//! .NET: sections of `appsettings.json` that are bound to `RetryStrategyOptions` of Polly, without the standard
//! handler.
//!
//! Read in Polly's `RetryConstants` and `RetryHelper`, version 8.

use core::time::Duration;

use super::dotnet::{self, Shape};
use crate::entry::{Entry, EntryKind, RetryBudget, Setting};
use crate::fields::{Fields, join};
use crate::format::Format;
use crate::tree::{Node, Value};

const DEFAULTS: dotnet::Defaults =
    dotnet::Defaults { retries: 3, delay: Duration::from_secs(2), shape: Shape::Constant, has_jitter: false };

/// Returns whether a document has a section with the options of a retry strategy, beside those of the standard handler.
pub(crate) fn has_strategy(node: &Node) -> bool {
    // The standard handler has its own reader.
    let mut others = node.members().iter().filter(|member| !dotnet::is_section(&member.node));
    others.any(|member| is_strategy(&member.node) || has_strategy(&member.node))
}

/// The number of retries, and one more option, so that the section of another library is not taken for one of Polly.
fn is_strategy(node: &Node) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| node.get(name).is_some());
    has(&["MaxRetryAttempts"]) && has(&["BackoffType", "UseJitter", "MaxDelay", "Delay"])
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    walk(document, "", &mut entries);
    entries
}

fn walk(node: &Node, path: &str, entries: &mut Vec<Entry>) {
    for member in node.members().iter().filter(|member| !dotnet::is_section(&member.node)) {
        let path = join(path, &member.key);
        if is_strategy(&member.node) {
            let mut entry = Entry::new(Format::Polly, EntryKind::Call, path.clone(), member.key_span);
            entry.settings.budget = Some(Setting::default(RetryBudget::Unlimited));
            dotnet::strategy(Fields::of(&member.node, path), DEFAULTS, &mut entry);
            entries.push(entry);
        } else if matches!(member.node.value, Value::Map(_)) {
            walk(&member.node, &path, entries);
        }
    }
}
