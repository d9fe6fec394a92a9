//! Dapr: `Resiliency`.
//!
//! Read in `pkg/apis/resiliency` and in the documentation of policies, Dapr 1.17.
//!
//! | field | default | 0, negative | ignored |
//! |---|---|---|---|
//! | `policy` | constant | | |
//! | `maxRetries` | no limit | 0: no retry; below 0: no limit | |
//! | `duration` | 5 s | 0: at once | by an exponential policy, which begins at 500 ms |
//! | `maxInterval` | 60 s | | by a constant policy |
//! | a policy | | | if no target names it, and its name is none that applies by default |
//! | `circuitBreakers` | | | not read, and named |

use core::time::Duration;
use std::collections::HashMap;

use stagger_core::{Jitter, Ratio};

use super::object::Object;
use crate::entry::{Entry, EntryKind, Found, Limit, RemarkKind, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::{Member, Node, Value};
use crate::units;

const DELAY: Duration = Duration::from_secs(5);
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
const MULTIPLIER: f64 = 1.5;

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
        retry(Fields::of(&policy.node, path.clone()), &mut entry);
        timeout(&timeouts, targets, &mut entry);
        if targets.is_empty() && !policy.key.starts_with("Default") && !policy.key.starts_with("DaprBuiltIn") {
            entry.remarks.push(crate::entry::Remark {
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

fn retry(mut fields: Fields<'_>, entry: &mut Entry) {
    let remarks = &mut entry.remarks;
    let shape = fields.read("policy", |field| {
        field.parse(remarks, "constant or exponential", |text| match text {
            "exponential" => Some(true),
            "constant" => Some(false),
            _ => None,
        })
    });
    let retries = fields.read("maxRetries", |field| {
        field.parse(remarks, "a whole number, or -1 for no limit", |text| text.parse::<i64>().ok())
    });
    // Below zero is no limit.
    entry.settings.attempts = Some(retries.map(Limit::of_retries).flat_or(Limit::None));
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
        let longest = longest.map_or(Found::Absent, |field| field.duration(remarks, units::go, "15s"));
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
        let delay = delay.map_or(Found::Absent, |field| field.duration(remarks, units::go, "5s"));
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
fn timeout(timeouts: &HashMap<&str, &Member>, targets: &[&Node], entry: &mut Entry) {
    let mut found = None;
    for target in targets {
        let Some(name) = target.text_of("timeout") else { continue };
        let Some(member) = timeouts.get(name) else { continue };
        let path = format!("policies.timeouts.{name}");
        let field = Field { path, key_span: member.key_span, node: &member.node };
        let length = field.duration(&mut entry.remarks, units::go, "5s").limit_or(Limit::None);
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
