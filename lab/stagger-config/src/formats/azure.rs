//! Azure Functions: `retry` in `host.json` and `function.json`, and the deliveries of queues in `host.json`. Azure
//! Service Bus and Event Hubs: the retry options of their clients, in `host.json`, and in sections of
//! `appsettings.json` that are bound to the options of the client.
//!
//! Read in the webjobs SDK's `RandomizedExponentialBackoffStrategy`, in `BasicRetryPolicy` and `ServiceBusRetryOptions`
//! of Azure.Messaging.ServiceBus, and in the schema of `host.json`.
//!
//! | field | default | 0, negative | ignored | refused |
//! |---|---|---|---|---|
//! | `retry.maxRetryCount` | none | 0: no retry; -1: no limit | | absent |
//! | `retry.strategy` | none | | | words other than `fixedDelay`, `exponentialBackoff` |
//! | `delayInterval` | none | 0: at once | | absent with `fixedDelay` |
//! | `minimumInterval`, `maximumInterval` | none | | | absent with `exponentialBackoff` |
//! | `maxDequeueCount` | 5 | | | 0 |
//! | `visibilityTimeout` | 0 | 0: at once | | no length |
//! | `maxRetries` of a client | 3 | 0: no retry | | no whole number |
//! | `delay`, `maxDelay` | 800 ms, 60 s | 0: no retry | `maxDelay` if fixed | no length |
//! | `tryTimeout` | 60 s | | | no length |
//! | `mode` | exponential | | | other words |

use core::time::Duration;

use stagger_core::{Jitter, Ratio};

use super::dotnet::{entries, span};
use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;

const DELIVERIES: u32 = 5;

/// The settings of queues, in the versions of the host.
const QUEUES: [&[&str]; 2] = [&["extensions", "queues"], &["queues"]];

/// Returns whether a document is `host.json`, or a `function.json` with a strategy.
pub(crate) fn is_functions(document: &Node) -> bool {
    const HOST: [&str; 5] = ["extensionBundle", "extensions", "functionTimeout", "logging", "retry"];
    let is_host = document.text_of("version") == Some("2.0");
    // The name of the strategy alone is one that other systems have as well.
    const BESIDE: [&str; 2] = ["bindings", "scriptFile"];
    let has_strategy = document.at(&["retry", "strategy"]).is_some()
        && (document.at(&["retry", "maxRetryCount"]).is_some()
            || BESIDE.iter().any(|name| document.get(name).is_some())
            || matches!(document.text_at(&["retry", "strategy"]), Some("fixedDelay" | "exponentialBackoff")));
    has_strategy || is_host && HOST.iter().any(|name| document.get(name).is_some())
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Fields::of(document, "").take("retry").iter().map(executions).collect();
    for path in QUEUES {
        let Some(queues) = document.at(path) else { continue };
        let mut fields = Fields::of(queues, path.join("."));
        entries.extend(fields.take("maxDequeueCount").map(|field| deliveries(&field, &mut fields)));
    }
    entries
}

/// How a function is executed again after it has failed.
fn executions(field: &Field<'_>) -> Entry {
    let mut entry = Entry::new(Format::AzureFunctions, EntryKind::Step, field.path.clone(), field.span());
    let mut fields = field.fields();
    let remarks = &mut entry.remarks;
    // A function does something; it runs again whatever that was.
    entry.may_repeat_unsafe = Some(true);
    let retries = fields.read("maxRetryCount", |field| {
        field.parse(remarks, "a whole number, or -1 for no limit", |text| text.parse::<i64>().ok())
    });
    let is_missing = matches!(retries, Found::Absent);
    entry.settings.attempts = Some(retries.map(Limit::of_retries).flat_or(Limit::Unknown));
    let strategy = fields.take("strategy");
    let name = match &strategy {
        Some(field) => field.text(),
        None => None,
    };
    match name {
        Some("fixedDelay") => {
            let delay = required("delayInterval", field, &mut fields, remarks);
            if let Some(delay) = delay.known() {
                entry.settings = core::mem::take(&mut entry.settings).constant(delay);
            }
        }
        Some("exponentialBackoff") => {
            let shortest = required("minimumInterval", field, &mut fields, remarks);
            let longest = required("maximumInterval", field, &mut fields, remarks);
            entry.settings.base = shortest.known();
            entry.settings.cap = longest.limit();
            entry.settings.multiplier = Some(Setting::default(2.0));
            entry.settings.jitter = Some(Setting::default(Jitter::Factor(Ratio::percent(20))));
            remarks.push(field.remark(
                RemarkKind::Unmapped,
                "the first delay is minimumInterval, and that before retry n from 2 on is minimumInterval · \
                 (1 + 2^(n-2) · U[0.8, 1.2]): in the end half as long as a doubling, as which it is read",
            ));
        }
        _ => match &strategy {
            Some(strategy) if !strategy.says(remarks) => {}
            _ => {
                let text = "strategy must be fixedDelay or exponentialBackoff";
                remarks.push(field.remark(RemarkKind::Invalid, text));
            }
        },
    }
    if is_missing {
        entry
            .remarks
            .push(field.remark(RemarkKind::Invalid, "maxRetryCount is required: the function app does not start"));
    }
    entry.remarks.push(field.remark(
        RemarkKind::Note,
        "a trigger that delivers again, such as a queue, multiplies these executions by its deliveries",
    ));
    fields.finish(&mut entry.remarks);
    entry
}

/// Reads a length without which the function app does not start.
fn required(name: &str, retry: &Field<'_>, fields: &mut Fields<'_>, remarks: &mut Vec<Remark>) -> Found<Duration> {
    let found = fields.read(name, |field| span(field, remarks));
    if found == Found::Absent {
        let text = format!("{name} is required: the function app does not start");
        remarks.push(retry.remark(RemarkKind::Invalid, text));
    }
    found
}

/// How often a queue's message is delivered.
fn deliveries(field: &Field<'_>, fields: &mut Fields<'_>) -> Entry {
    let mut entry = Entry::new(Format::AzureFunctions, EntryKind::Step, field.path.clone(), field.span());
    entry.may_repeat_unsafe = Some(true);
    let remarks: &mut Vec<Remark> = &mut entry.remarks;
    let count = field.positive(remarks);
    let delay = fields.read("visibilityTimeout", |field| span(field, remarks));
    entry.settings.attempts = Some(count.limit_or(Limit::At(DELIVERIES)));
    if let Some(delay) = delay.or(Duration::ZERO) {
        entry.settings = core::mem::take(&mut entry.settings).constant(delay);
    }
    entry
}

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
    const OTHERS: [&str; 4] = ["delay", "maxDelay", "maximumDelay", "mode"];
    let named = NAMES.iter().filter(|name| fields.take(name).is_some()).count();
    let others = OTHERS.iter().filter(|name| fields.take(name).is_some()).count();
    is_named && named > 0 && (key.eq_ignore_ascii_case("clientRetryOptions") || named + others >= 2)
}

pub(crate) fn read_clients(document: &Node) -> Vec<Entry> {
    entries(document, |name, field| if is_options(name, field.node) { Some(options(field)) } else { None })
}

fn options(field: &Field<'_>) -> Entry {
    let mut entry = Entry::new(Format::ServiceBus, EntryKind::Call, field.path.clone(), field.span());
    let mut fields = field.fields();
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let retries = fields.read_any(&["maxRetries", "maximumRetries"], |field| field.count(remarks));
    let delay = fields.read("delay", |field| span(field, remarks)).or(DELAY);
    let longest = fields.read_any(&["maxDelay", "maximumDelay"], |field| span(field, remarks)).or(LONGEST_DELAY);
    let is_fixed = fields.read("mode", |field| {
        field.parse(remarks, "fixed or exponential", |text| match text.to_ascii_lowercase().as_str() {
            "fixed" => Some(true),
            "exponential" => Some(false),
            _ => None,
        })
    });
    let is_fixed = is_fixed.or(false);
    let timeout = fields.read("tryTimeout", |field| span(field, remarks));
    settings.attempt_timeout = Some(timeout.limit_or(Limit::At(TRY_TIMEOUT)));
    settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    // Without a delay nothing is retried.
    let off = [delay, longest].into_iter().flatten().find(|length| length.value.is_zero());
    let attempts = retries.retries_or(RETRIES);
    settings.attempts = Some(match off {
        Some(off) => off.map(|_| Limit::At(1)),
        // One that is not known may turn them off.
        None if delay.is_none() || longest.is_none() => Setting { value: Limit::Unknown, ..attempts },
        None => attempts,
    });
    if off.is_some() && attempts.value != Limit::At(1) {
        remarks.push(field.remark(RemarkKind::Note, "a delay of zero turns retries off"));
    }
    if let (Some(delay), Some(longest), Some(is_fixed)) = (delay, longest, is_fixed) {
        // The factor of the first retry is two.
        let factor = if is_fixed.value { 1 } else { 2 };
        settings.base = Some(delay.map(|delay| delay.saturating_mul(factor).min(longest.value)));
        settings.multiplier = Some(is_fixed.map(|is_fixed| if is_fixed { 1.0 } else { 2.0 }));
        settings.jitter = Some(Setting::default(Jitter::Added(delay.value.mul_f64(JITTER))));
    }
    if let (Some(Setting { value: false, .. }), Some(longest)) = (is_fixed, longest) {
        settings.cap = Some(longest.map(Limit::At));
        remarks.push(field.remark(
            RemarkKind::Note,
            "8% of the delay is added at random, however long the delays grow, and nothing of it is left at the \
             longest one",
        ));
    }
    remarks.push(field.remark(
        RemarkKind::Note,
        "a message whose sending timed out may arrive twice, unless the queue detects duplicates",
    ));
    fields.finish(remarks);
    entry
}
