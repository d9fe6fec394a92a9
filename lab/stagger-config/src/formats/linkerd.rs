//! Linkerd: `ServiceProfile`, and annotations of services and routes.
//!
//! Read in the reference pages of versions 2.10 to 2.19, and in `policy-controller/grpc/src/outbound/http.rs`, which
//! sets the delays of annotated retries.
//!
//! | field | default | 0 | ignored |
//! |---|---|---|---|
//! | `isRetryable` of a profile | false | | |
//! | `timeout` of a profile's route | 10 s | | |
//! | `retryBudget` | 20 %, 10 a second, over 10 s | | without a route with `isRetryable` |
//! | `retry.linkerd.io/http`, `/grpc` | no retry | | on others than services, routes, `EgressNetwork` |
//! | `retry.linkerd.io/limit` | 1 | 0: no retry | without a condition |
//! | `retry.linkerd.io/timeout` | no limit | | without a condition |
//! | delays of annotated retries | 25 to 250 ms, and up to as much again | | |
//! | delays of a profile | at once | | |

use core::time::Duration;

use stagger_core::Jitter;

use super::http::are_idempotent;
use super::object::Object;
use crate::entry::{Entry, EntryKind, Found, Limit, RemarkKind, RetryBudget, Setting, Settings};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;
use crate::units;

const PROFILE_TIMEOUT: Duration = Duration::from_secs(10);
const RATIO: f64 = 0.2;
const LEAST_PER_SECOND: f64 = 10.0;
const PERIOD: Duration = Duration::from_secs(10);
const ANNOTATED_RETRIES: u32 = 1;
/// Twice 25 ms and twice 250 ms: the jitter of 1 adds up to as much as the delay.
const LONGEST_FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(500);

/// Retries at once, without a delay.
fn at_once(settings: &mut Settings) {
    settings.base = Some(Setting::default(Duration::ZERO));
    settings.jitter = Some(Setting::default(Jitter::None));
}

pub(crate) fn read_profile(object: &Object<'_>, entries: &mut Vec<Entry>) {
    let Some(spec) = object.node.get("spec") else { return };
    let mut spec_fields = Fields::of(spec, object.path());
    let mut remarks = Vec::new();
    let default = RetryBudget::Ratio { ratio: RATIO, least_per_second: LEAST_PER_SECOND, period: PERIOD };
    let mut budget = Some(Setting::default(default));
    if let Some(field) = spec_fields.take("retryBudget") {
        let mut fields = field.fields();
        let ratio = fields.number("retryRatio", &mut remarks);
        let least = fields.number("minRetriesPerSecond", &mut remarks);
        let ttl = fields.duration("ttl", &mut remarks, units::go, "10s");
        fields.finish(&mut remarks);
        budget = match (ratio.or(RATIO), least.or(LEAST_PER_SECOND), ttl.or(PERIOD)) {
            (Some(ratio), Some(least), Some(ttl)) => {
                let (ratio, least_per_second, period) = (ratio.value, least.value, ttl.value);
                Some(Setting::stated(RetryBudget::Ratio { ratio, least_per_second, period }, field.span()))
            }
            _ => None,
        };
    }
    let mut is_used = false;
    for (at, route) in spec.get("routes").map(Node::items).unwrap_or_default().iter().enumerate() {
        let mut fields = Fields::of(route, format!("{}.routes[{at}]", object.path()));
        let retryable = fields.take("isRetryable");
        let Some(field) = retryable.filter(|field| field.text() == Some("true")) else { continue };
        let mut entry = Entry::new(Format::Linkerd, EntryKind::Call, fields.path.clone(), field.span());
        let timeout = fields.duration("timeout", &mut entry.remarks, units::go, "500ms");
        entry.settings.timeout = Some(timeout.limit_or(Limit::At(PROFILE_TIMEOUT)));
        entry.settings.attempts = Some(Setting::default(Limit::None));
        entry.settings.budget = budget;
        at_once(&mut entry.settings);
        let method = route.text_at(&["condition", "method"]);
        entry.may_repeat_unsafe = method.map(|method| matches!(method, "POST" | "PATCH"));
        entry
            .remarks
            .push(field.remark(RemarkKind::Note, "no number limits the retries: the budget and the timeout do"));
        entry.remarks.append(&mut remarks);
        is_used = true;
        entries.push(entry);
    }
    let stated = budget.and_then(|budget| budget.span());
    if let (false, Some(span)) = (is_used, stated) {
        let mut entry = Entry::new(Format::Linkerd, EntryKind::Limit, format!("{}.retryBudget", object.path()), span);
        entry.settings.budget = budget;
        entry.remarks.push(crate::entry::Remark {
            kind: RemarkKind::NoEffect,
            path: entry.path.clone(),
            span,
            text: "no route has isRetryable: true, so nothing is retried".to_owned(),
        });
        entries.push(entry);
    }
}

/// Returns whether a route of the Gateway API admits idempotent methods only.
fn is_for_idempotent_methods(route: &Node) -> bool {
    let rules = route.at(&["spec", "rules"]).map(Node::items).unwrap_or_default();
    let conditions = |rule: &'_ Node| {
        let conditions = rule.get("matches").map(Node::items).unwrap_or_default();
        are_idempotent(conditions, |condition| condition.get("method"))
    };
    !rules.is_empty() && rules.iter().all(conditions)
}

/// Reads the annotations of an object, of whatever kind.
pub(crate) fn read_annotations(object: &Object<'_>, entries: &mut Vec<Entry>) {
    // On other objects they have no effect.
    if !matches!(object.kind, "Service" | "HTTPRoute" | "GRPCRoute" | "EgressNetwork") {
        return;
    }
    let Some(annotations) = object.node.at(&["metadata", "annotations"]) else { return };
    let mut fields = Fields::of(annotations, format!("{} annotations", object.path()));
    let conditions: Vec<Field<'_>> =
        ["retry.linkerd.io/http", "retry.linkerd.io/grpc"].iter().filter_map(|name| fields.take(name)).collect();
    let request = fields.take("timeout.linkerd.io/request");
    let Some(place) = conditions.first().or(request.as_ref()) else { return };
    let kind = if conditions.is_empty() { EntryKind::Timeout } else { EntryKind::Call };
    let mut entry = Entry::new(Format::Linkerd, kind, fields.path.clone(), place.span());
    let remarks = &mut entry.remarks;
    let mut length = |field: Option<Field<'_>>| {
        let found = match field {
            Some(field) => field.duration(remarks, units::go, "10s"),
            None => Found::Absent,
        };
        found.limit_or(Limit::None)
    };
    entry.settings.timeout = Some(length(request));
    if !conditions.is_empty() {
        entry.settings.attempt_timeout = Some(length(fields.take("retry.linkerd.io/timeout")));
        let retries = fields.count("retry.linkerd.io/limit", remarks);
        entry.settings.attempts = Some(retries.retries_or(ANNOTATED_RETRIES));
        entry.settings.budget = Some(Setting::default(RetryBudget::Unlimited));
        // The policy controller sets it: a delay between its base and twice as much.
        entry.settings.base = Some(Setting::default(LONGEST_FIRST));
        entry.settings.cap = Some(Setting::default(Limit::At(LONGEST)));
        entry.settings.multiplier = Some(Setting::default(2.0));
        entry.settings.jitter = Some(Setting::default(Jitter::Equal));
        remarks.push(crate::entry::Remark {
            kind: RemarkKind::Note,
            path: fields.path.clone(),
            span: entry.span,
            text: "backs off from 25ms to 250ms, and adds up to as much again at random, which no annotation changes"
                .to_owned(),
        });
        let words: Vec<_> = conditions.iter().flat_map(Field::words).collect();
        entry.may_repeat_unsafe = Some(words.iter().any(|word| {
            matches!(*word, "5xx" | "gateway-error" | "internal" | "deadline-exceeded" | "cancelled")
                || word.starts_with('5')
        }));
        if entry.may_repeat_unsafe == Some(true) && is_for_idempotent_methods(object.node) {
            entry.may_repeat_unsafe = Some(false);
        }
        let not_a_policy = "limits other parts of a request";
        fields.unmapped(
            &[("timeout.linkerd.io/response", not_a_policy), ("timeout.linkerd.io/idle", not_a_policy)],
            remarks,
        );
    }
    entries.push(entry);
}
