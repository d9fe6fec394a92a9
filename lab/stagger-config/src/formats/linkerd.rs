//! Linkerd: `ServiceProfile`, and annotations of services and routes.
//!
//! Read in the reference pages of versions 2.10 to 2.19.

use core::time::Duration;

use stagger_core::Jitter;

use super::http::are_idempotent;
use super::object::Object;
use crate::entry::{Entry, EntryKind, Limit, RemarkKind, RetryBudget, Setting, Settings};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;
use crate::units;

const PROFILE_TIMEOUT: Duration = Duration::from_secs(10);
const RATIO: f64 = 0.2;
const LEAST_PER_SECOND: f64 = 10.0;
const PERIOD: Duration = Duration::from_secs(10);
const ANNOTATED_RETRIES: u32 = 1;

/// Retries at once, without a delay.
fn at_once(settings: &mut Settings) {
    settings.base = Some(Setting::default(Duration::ZERO));
    settings.jitter = Some(Setting::default(Jitter::None));
}

pub(crate) fn read_profile(object: &Object<'_>, entries: &mut Vec<Entry>) {
    let Some(spec) = object.node.get("spec") else { return };
    let mut spec_fields = Fields::of(spec, object.path());
    let mut remarks = Vec::new();
    let mut budget =
        Setting::default(RetryBudget::Ratio { ratio: RATIO, least_per_second: LEAST_PER_SECOND, period: PERIOD });
    if let Some(field) = spec_fields.take("retryBudget") {
        let mut fields = field.fields();
        let ratio = fields.number("retryRatio", &mut remarks);
        let least = fields.number("minRetriesPerSecond", &mut remarks);
        let ttl = fields.duration("ttl", &mut remarks, units::go, "10s");
        fields.finish(&mut remarks);
        let stated = RetryBudget::Ratio {
            ratio: Setting::value_or(ratio, RATIO),
            least_per_second: Setting::value_or(least, LEAST_PER_SECOND),
            period: Setting::value_or(ttl, PERIOD),
        };
        budget = Setting::stated(stated, field.span());
    }
    let mut is_used = false;
    for (at, route) in spec.get("routes").map(Node::items).unwrap_or_default().iter().enumerate() {
        let mut fields = Fields::of(route, format!("{}.routes[{at}]", object.path()));
        let retryable = fields.take("isRetryable");
        let Some(field) = retryable.filter(|field| field.text() == Some("true")) else { continue };
        let mut entry = Entry::new(Format::Linkerd, EntryKind::Call, fields.path.clone(), field.span());
        let timeout = fields.duration("timeout", &mut entry.remarks, units::go, "500ms");
        entry.settings.timeout = Some(timeout.unwrap_or(Setting::default(PROFILE_TIMEOUT)).map(Limit::At));
        entry.settings.attempts = Some(Setting::default(Limit::None));
        entry.settings.budget = Some(budget);
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
    if let (false, Some(span)) = (is_used, budget.span()) {
        let mut entry = Entry::new(Format::Linkerd, EntryKind::Limit, format!("{}.retryBudget", object.path()), span);
        entry.settings.budget = Some(budget);
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
            None => None,
        };
        Setting::or_unlimited(found)
    };
    entry.settings.timeout = Some(length(request));
    if !conditions.is_empty() {
        entry.settings.attempt_timeout = Some(length(fields.take("retry.linkerd.io/timeout")));
        let retries = fields.count("retry.linkerd.io/limit", remarks);
        let retries = retries.unwrap_or(Setting::default(ANNOTATED_RETRIES));
        entry.settings.attempts = Some(retries.map(|retries| Limit::At(retries.saturating_add(1))));
        entry.settings.budget = Some(Setting::default(RetryBudget::Unlimited));
        at_once(&mut entry.settings);
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
