//! Dapr: `Resiliency`.
//!
//! Read in `pkg/apis/resiliency` and `pkg/resiliency`, Dapr 1.17, in `retry` and `config` of dapr/kit, and in
//! cenkalti/backoff 4.
//!
//! | field | default | 0, negative | ignored | refused |
//! |---|---|---|---|---|
//! | `policy` | constant | | | other words |
//! | `maxRetries` | no limit | 0: no retry; below 0: no limit | | no whole number |
//! | `maxRetries` of `DaprBuiltIn…Retries` | 3 | 3, of whatever is below 3 | all of `DaprBuiltInActorNotFoundRetries` | |
//! | `duration` | 5 s | 0: at once | by an exponential policy, which begins at 500 ms | no length |
//! | `maxInterval` | 60 s | | by a constant policy | no length |
//! | a policy | | | if no target names it, and its name is none that applies by default | |
//! | `circuitBreakers` | | | not read, and named | |
//!
//! A length that is a bare number counts milliseconds. An exponential policy makes no retry after 15 minutes.

use core::time::Duration;
use std::collections::HashMap;

use stagger_core::{Jitter, Ratio};

use super::object::Object;
use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::{Member, Node, Value};
use crate::units;

const DELAY: Duration = Duration::from_secs(5);
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
const MULTIPLIER: f64 = 1.5;
/// After it, an exponential policy makes no retry.
const LONGEST: Duration = Duration::from_secs(15 * 60);

pub(crate) fn read(object: &Object<'_>, entries: &mut Vec<Entry>) {
    let Some(spec) = object.node.get("spec") else { return };
    let policies = spec.at(&["policies", "retries"]).map(Node::members).unwrap_or_default();
    let timeouts = spec.at(&["policies", "timeouts"]).map(Node::index).unwrap_or_default();
    if let Some(policies) = spec.get("policies")
        && let Some(field) = Fields::of(policies, "policies").take("circuitBreakers")
    {
        let mut entry = Entry::new(Format::Dapr, EntryKind::Unread, field.path.clone(), field.span());
        entry.remarks.push(field.remark(RemarkKind::NotRead, "circuit breakers, which end retries, are not read"));
        entries.push(entry);
    }
    let mut users = HashMap::new();
    if let Some(targets) = spec.get("targets") {
        collect_users(targets, &mut users);
    }
    for policy in policies {
        let path = format!("policies.retries.{}", policy.key);
        let mut entry = Entry::new(Format::Dapr, EntryKind::Call, path.clone(), policy.key_span);
        let targets = users.get(&*policy.key).map(Vec::as_slice).unwrap_or_default();
        if policy.key == PROTECTED {
            entry.kind = EntryKind::Unread;
            let text = "Dapr ignores a policy of this name: its own holds".to_owned();
            entry.remarks.push(Remark { kind: RemarkKind::NoEffect, path, span: policy.key_span, text });
            entries.push(entry);
            continue;
        }
        retry(Fields::of(&policy.node, path.clone()), BUILT_IN.contains(&&*policy.key), &mut entry);
        timeout(&timeouts, &policy.key, targets, &mut entry);
        if entry.settings.multiplier == Some(Setting::default(MULTIPLIER)) && !entry.settings.never_retries() {
            let text = "an exponential policy makes no retry after 15 minutes".to_owned();
            entry.remarks.push(Remark { kind: RemarkKind::Note, path: path.clone(), span: policy.key_span, text });
            // Then all attempts end, if the last one does.
            if matches!(entry.settings.attempt_timeout, Some(Setting { value: Limit::At(_), .. })) {
                entry.settings.timeout = Some(Setting::default(Limit::At(LONGEST)));
            }
        }
        if targets.is_empty() && !is_default(&policy.key) && !BUILT_IN.contains(&&*policy.key) {
            entry.remarks.push(Remark {
                kind: RemarkKind::NoEffect,
                path,
                span: policy.key_span,
                text: "no target names this policy, and its name is not one that applies by default".to_owned(),
            });
        }
        entries.push(entry);
    }
}

/// Collects the mappings below `targets` by the retry policy that they name. The parser limits the depth.
fn collect_users<'a>(node: &'a Node, users: &mut HashMap<&'a str, Vec<&'a Node>>) {
    if let Some(name) = node.text_of("retry") {
        users.entry(name).or_default().push(node);
    }
    for member in node.members().iter().filter(|member| matches!(member.node.value, Value::Map(_))) {
        collect_users(&member.node, users);
    }
}

/// Policies of Dapr that a file may replace, with at least three retries.
const BUILT_IN: [&str; 4] = [
    "DaprBuiltInServiceRetries",
    "DaprBuiltInActorRetries",
    "DaprBuiltInActorReminderRetries",
    "DaprBuiltInInitializationRetries",
];
const BUILT_IN_RETRIES: i64 = 3;
/// The one that a file may not replace.
const PROTECTED: &str = "DaprBuiltInActorNotFoundRetries";

/// Returns whether a policy applies where no target names one: `DefaultRetryPolicy`, `DefaultAppRetryPolicy` and the
/// like.
fn is_default(name: &str) -> bool {
    const KINDS: [&str; 8] =
        ["Binding", "Configuration", "Lock", "Pubsub", "Crypto", "Conversation", "Secretstore", "Statestore"];
    let Some(level) = name.strip_prefix("Default").and_then(|rest| rest.strip_suffix("RetryPolicy")) else {
        return false;
    };
    let component = match level.strip_suffix("Inbound").or(level.strip_suffix("Outbound")) {
        Some(level) => level.strip_suffix("Component"),
        None => None,
    };
    matches!(level, "" | "App" | "Actor" | "Component")
        || component.is_some_and(|kind| kind.is_empty() || KINDS.contains(&kind))
}

/// Parses a length, of which a bare number counts milliseconds.
fn length(text: &str) -> Option<Duration> {
    match text.parse() {
        Ok(milliseconds) => Some(Duration::from_millis(milliseconds)),
        Err(_) => units::go(text),
    }
}

fn retry(mut fields: Fields<'_>, is_built_in: bool, entry: &mut Entry) {
    let remarks = &mut entry.remarks;
    let shape = fields.read("policy", |field| {
        field.parse(remarks, "constant or exponential", |text| match text.to_ascii_lowercase().as_str() {
            "exponential" => Some(true),
            "constant" => Some(false),
            _ => None,
        })
    });
    let retries = fields.read("maxRetries", |field| {
        field.parse(remarks, "a whole number, or -1 for no limit", |text| text.parse::<i64>().ok())
    });
    // Below zero is no limit, except for what Dapr has by itself.
    let (attempts, default) = if is_built_in {
        let attempts = retries.map(|retries| Limit::of_retries(retries.max(BUILT_IN_RETRIES)));
        (attempts, Limit::of_retries(BUILT_IN_RETRIES))
    } else {
        (retries.map(Limit::of_retries), Limit::None)
    };
    if let (true, Found::Known(Setting { value: ..BUILT_IN_RETRIES, .. })) = (is_built_in, retries) {
        let (path, span) = (fields.path.clone(), entry.span);
        let text = "Dapr makes at least 3 retries by this policy".to_owned();
        remarks.push(Remark { kind: RemarkKind::Invalid, path, span, text });
    }
    entry.settings.attempts = Some(attempts.flat_or(default));
    let delay = fields.take("duration");
    let longest = fields.take("maxInterval");
    let Some(is_exponential) = shape.or(false) else {
        // Which of the two has an effect is not known.
        return fields.finish(remarks);
    };
    if is_exponential.value {
        if let Some(field) = delay {
            remarks.push(field.remark(
                RemarkKind::NoEffect,
                "an exponential policy begins at 500ms; use policy: constant, or leave it out",
            ));
        }
        let longest = longest.map_or(Found::Absent, |field| field.duration(remarks, length, "15s"));
        let settings = &mut entry.settings;
        settings.base = Some(Setting::default(FIRST_DELAY));
        settings.cap = Some(longest.limit_or(Limit::At(LONGEST_DELAY)));
        settings.multiplier = Some(Setting::default(MULTIPLIER));
        settings.jitter = Some(Setting::default(Jitter::Factor(Ratio::percent(50))));
    } else {
        if let Some(field) = longest {
            remarks.push(field.remark(
                RemarkKind::NoEffect,
                "a constant policy does not grow; use policy: exponential, or leave it out",
            ));
        }
        let delay = delay.map_or(Found::Absent, |field| field.duration(remarks, length, "5s"));
        if let Some(delay) = delay.or(DELAY) {
            entry.settings = core::mem::take(&mut entry.settings).constant(delay);
        }
        // `policy: constant` says so.
        entry.settings.multiplier = Some(is_exponential.map(|_| 1.0));
    }
    fields.unmapped(&[("matching", "which status codes are retried")], remarks);
    fields.finish(remarks);
}

/// The timeout of the targets that use a policy, if they agree.
fn timeout(timeouts: &HashMap<&str, &Member>, policy: &str, targets: &[&Node], entry: &mut Entry) {
    if targets.is_empty() && is_default(policy) && timeouts.keys().any(|name| name.starts_with("Default")) {
        // Which of them goes with this policy depends on the target.
        return;
    }
    let mut found = None;
    for target in targets {
        let Some(name) = target.text_of("timeout") else { continue };
        let Some(member) = timeouts.get(name) else { continue };
        let path = format!("policies.timeouts.{name}");
        let field = Field { path, key_span: member.key_span, node: &member.node };
        let length = field.duration(&mut entry.remarks, length, "5s").limit_or(Limit::None);
        match found {
            None => found = Some(length),
            Some(Setting { value, .. }) if value == length.value => {}
            Some(_) => {
                entry
                    .remarks
                    .push(field.remark(RemarkKind::Unmapped, "the targets of this policy have different timeouts"));
                return;
            }
        }
    }
    entry.settings.attempt_timeout = Some(found.unwrap_or(Setting::default(Limit::None)));
}
