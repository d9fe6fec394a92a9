//! Azure Service Bus and Event Hubs: the retry options of their clients, in `host.json` of Azure Functions, and in
//! sections of `appsettings.json` that are bound to the options of the client.
//!
//! Read in `BasicRetryPolicy` and `ServiceBusRetryOptions` of Azure.Messaging.ServiceBus, and in the schema of
//! `host.json`.

use core::time::Duration;

use stagger_core::Jitter;

use super::dotnet::{entries, span};
use crate::entry::{Entry, EntryKind, Limit, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;

const RETRIES: u32 = 3;
const DELAY: Duration = Duration::from_millis(800);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
const TRY_TIMEOUT: Duration = Duration::from_secs(60);
/// What is drawn at random and added, as a part of the delay.
const JITTER: f64 = 0.08;

/// Returns whether a document has a section with these options.
pub(crate) fn has_options(node: &Node) -> bool {
    node.members().iter().any(|member| is_options(&member.key, &member.node) || has_options(&member.node))
}

fn is_options(key: &str, node: &Node) -> bool {
    // Neither of other clients of Azure nor of Polly.
    const NAMES: [&str; 3] = ["maxRetries", "maximumRetries", "tryTimeout"];
    let is_named = ["clientRetryOptions", "RetryOptions"].iter().any(|name| key.eq_ignore_ascii_case(name));
    let mut fields = Fields::of(node, "");
    is_named && NAMES.iter().any(|name| fields.take(name).is_some())
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    entries(document, |name, field| is_options(name, field.node).then(|| options(field)))
}

fn options(field: &Field<'_>) -> Entry {
    let mut entry = Entry::new(Format::ServiceBus, EntryKind::Call, field.path.clone(), field.span());
    let mut fields = field.fields();
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let retries = fields.take_any(&["maxRetries", "maximumRetries"]).and_then(|field| field.count(remarks));
    let retries = retries.unwrap_or(Setting::default(RETRIES));
    let delay = fields.take("delay").and_then(|field| span(&field, remarks)).unwrap_or(Setting::default(DELAY));
    let longest = fields.take_any(&["maxDelay", "maximumDelay"]).and_then(|field| span(&field, remarks));
    let longest = longest.unwrap_or(Setting::default(LONGEST_DELAY));
    let is_fixed = fields.take("mode").and_then(|field| {
        field.parse(remarks, "fixed or exponential", |text| match text.to_ascii_lowercase().as_str() {
            "fixed" => Some(true),
            "exponential" => Some(false),
            _ => None,
        })
    });
    let is_fixed = is_fixed.unwrap_or(Setting::default(false));
    let timeout = fields.take("tryTimeout").and_then(|field| span(&field, remarks));
    settings.attempt_timeout = Some(timeout.unwrap_or(Setting::default(TRY_TIMEOUT)).map(Limit::At));
    settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    // Without a delay nothing is retried.
    let off = [delay, longest].into_iter().find(|length| length.value.is_zero());
    settings.attempts = Some(match off {
        Some(off) => off.map(|_| Limit::At(1)),
        None => retries.map(|retries| Limit::At(retries.saturating_add(1))),
    });
    if off.is_some() && retries.value > 0 {
        remarks.push(field.remark(RemarkKind::Note, "a delay of zero turns retries off"));
    }
    // The factor of the first retry is two.
    let factor = if is_fixed.value { 1 } else { 2 };
    settings.base = Some(delay.map(|delay| delay.saturating_mul(factor).min(longest.value)));
    settings.multiplier = Some(is_fixed.map(|is_fixed| if is_fixed { 1.0 } else { 2.0 }));
    settings.cap = (!is_fixed.value).then_some(longest.map(Limit::At));
    settings.jitter = Some(Setting::default(Jitter::Added(delay.value.mul_f64(JITTER))));
    if !is_fixed.value {
        remarks.push(field.remark(
            RemarkKind::Note,
            "8% of the delay is added at random, however long the delays grow, and nothing of it is left at the longest one",
        ));
    }
    remarks.push(field.remark(
        RemarkKind::Note,
        "a message whose sending timed out may arrive twice, unless the queue detects duplicates",
    ));
    fields.finish(remarks);
    entry
}
