//! Azure Functions: `retry` in `host.json` and `function.json`, and the deliveries of queues in `host.json`. Azure
//! Service Bus and Event Hubs: the retry options of their clients, in `host.json`, and in sections of
//! `appsettings.json` that are bound to the options of the client.
//!
//! Read in `RetryOptions`, `RetryStrategy` and `Utility.ValidateRetryOptions` of azure-functions-host, in the retry
//! attributes and the `RandomizedExponentialBackoffStrategy` of the webjobs SDK, in `QueuesOptions`, and in the retry
//! options and the `BasicRetryPolicy` of Azure.Messaging.ServiceBus and Azure.Messaging.EventHubs.
//!
//! | field | default | 0, negative | ignored | refused |
//! |---|---|---|---|---|
//! | `retry.maxRetryCount` | none | 0: no retry; -1: no limit | | absent, below -1 |
//! | `retry.strategy` | `exponentialBackoff` | 0: the default | | words other than `fixedDelay`, `exponentialBackoff` |
//! | `delayInterval` | none | 0: at once | with `exponentialBackoff` | absent with `fixedDelay` |
//! | `minimumInterval`, `maximumInterval` | none | 0: at once | with `fixedDelay` | absent with `exponentialBackoff`, the least above the longest |
//! | `maxDequeueCount` | 5 | refused | | below 1 |
//! | `visibilityTimeout` | 0 | 0: at once | | no length |
//! | `maxRetries` of a client | 3 | 0: no retry | | below 0, above 100 |
//! | `delay` | 800 ms | refused | | below 1 ms, above 5 min |
//! | `maxDelay` | 60 s | 0: no retry | | below 0 |
//! | `tryTimeout` | 60 s | | | below 0, above an hour |
//! | `mode` | exponential | 0: fixed | | other words |

use core::ops::RangeInclusive;
use core::time::Duration;

use stagger_core::{Jitter, Ratio};

use super::dotnet::{entries, span, span_within};
use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields, shortened, whole};
use crate::format::Format;
use crate::tree::Node;

const DELIVERIES: u32 = 5;

/// The settings of queues, in the versions of the host.
const QUEUES: [&[&str]; 2] = [&["extensions", "queues"], &["queues"]];

/// What starts functions whose executions are retried.
const RETRIED: [&str; 4] = ["timerTrigger", "kafkaTrigger", "eventHubTrigger", "cosmosDBTrigger"];

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
    // Of a single function: what starts it.
    let types = document.get("bindings").map(Node::items).unwrap_or_default().iter();
    let trigger = types.filter_map(|binding| binding.text_of("type")).find(|name| name.ends_with("Trigger"));
    if let (Some(entry), Some(trigger)) = (entries.first_mut(), trigger)
        && !RETRIED.contains(&trigger)
    {
        let text = format!(
            "`{}` starts this function: the documentation names retry policies for timers, Kafka, Event Hubs and Cosmos \
             DB alone",
            shortened(trigger)
        );
        let (path, span) = (entry.path.clone(), entry.span);
        entry.remarks.push(Remark { kind: RemarkKind::Note, path, span, text });
    }
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
        field
            .parse(remarks, "a whole number, or -1 for no limit", |text| text.parse().ok().filter(|&count| count >= -1))
    });
    let is_missing = matches!(retries, Found::Absent);
    entry.settings.attempts = Some(retries.map(Limit::of_retries).flat_or(Limit::Unknown));
    let strategy = fields.take("strategy");
    // The names are those of a type whose first one is the default.
    let name = match &strategy {
        Some(field) => field.text().map(str::to_ascii_lowercase),
        None => Some("exponentialbackoff".to_owned()),
    };
    let unused = |names: &[&str], fields: &mut Fields<'_>, remarks: &mut Vec<Remark>| {
        for field in names.iter().filter_map(|name| fields.take(name)) {
            remarks.push(field.remark(RemarkKind::NoEffect, "has no effect with this strategy"));
        }
    };
    match name.as_deref() {
        Some("fixeddelay" | "1") => {
            unused(&["minimumInterval", "maximumInterval"], &mut fields, remarks);
            let delay = required("delayInterval", field, &mut fields, remarks);
            if let Some(delay) = delay.known() {
                entry.settings = core::mem::take(&mut entry.settings).constant(delay);
            }
        }
        Some("exponentialbackoff" | "0") => {
            unused(&["delayInterval"], &mut fields, remarks);
            let shortest = required("minimumInterval", field, &mut fields, remarks);
            let longest = required("maximumInterval", field, &mut fields, remarks);
            if let (Some(shortest), Some(longest)) = (shortest.known(), longest.known())
                && shortest.value > longest.value
            {
                let text = "minimumInterval is above maximumInterval: the host refuses it";
                remarks.push(field.remark(RemarkKind::Invalid, text));
            }
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
        entry.remarks.push(field.remark(RemarkKind::Invalid, "maxRetryCount is required: the host refuses the policy"));
    }
    entry.remarks.push(field.remark(
        RemarkKind::Note,
        "a trigger that delivers again, such as a queue, multiplies these executions by its deliveries",
    ));
    fields.finish(&mut entry.remarks);
    entry
}

/// Reads a length without which the host refuses the policy.
fn required(name: &str, retry: &Field<'_>, fields: &mut Fields<'_>, remarks: &mut Vec<Remark>) -> Found<Duration> {
    let found = fields.read(name, |field| span(field, remarks));
    if found == Found::Absent {
        let text = format!("{name} is required: the host refuses the policy");
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
/// What the options accept.
const MOST_RETRIES: u32 = 100;
const DELAYS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(300);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(3_600);
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
    let retries = fields.read_any(&["maxRetries", "maximumRetries"], |field| {
        field.parse(remarks, "a whole number from 0 to 100", |text| {
            whole(text).filter(|&retries| retries <= MOST_RETRIES)
        })
    });
    let delay = fields.read("delay", |field| span_within(field, remarks, DELAYS)).or(DELAY);
    let longest = fields.read_any(&["maxDelay", "maximumDelay"], |field| span(field, remarks)).or(LONGEST_DELAY);
    let is_fixed = fields.read("mode", |field| {
        field.parse(remarks, "fixed or exponential", |text| match text.to_ascii_lowercase().as_str() {
            "fixed" | "0" => Some(true),
            "exponential" | "1" => Some(false),
            _ => None,
        })
    });
    let is_fixed = is_fixed.or(false);
    let timeout = fields.read("tryTimeout", |field| span_within(field, remarks, Duration::ZERO..=LONGEST_TIMEOUT));
    settings.attempt_timeout = Some(timeout.limit_or(Limit::At(TRY_TIMEOUT)));
    settings.budget = Some(Setting::default(RetryBudget::Unlimited));
    // Without a delay nothing is retried.
    let off = longest.filter(|length| length.value.is_zero());
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
        let mut added = delay.value.mul_f64(JITTER);
        if is_fixed.value {
            // What is added counts against the longest delay as well.
            added = added.min(longest.value.saturating_sub(delay.value));
        }
        let jitter = if added.is_zero() { Jitter::None } else { Jitter::Added(added) };
        settings.jitter = Some(Setting::default(jitter));
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
