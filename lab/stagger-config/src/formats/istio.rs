//! Istio: `VirtualService` and `DestinationRule`.
//!
//! Read in `pilot/pkg/networking/core/route/retry/retry.go` and `cluster_traffic_policy.go`.

use core::time::Duration;

use stagger_core::Jitter;

use super::http::{are_idempotent, repeats_unsafe};
use super::object::Object;
use crate::entry::{Entry, EntryKind, Limit, Remark, RemarkKind, RetryBudget, Setting, Settings};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::Node;
use crate::units;

/// What Istio retries where a route says nothing.
const DEFAULT_ATTEMPTS: u32 = 3;
const DEFAULT_RETRY_ON: &str = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes";
/// Envoy's, which Istio does not change.
const BASE: Duration = Duration::from_millis(25);
/// The cap is ten times the base.
const CAP_FACTOR: u32 = 10;
/// The number that Istio writes into its clusters: no limit.
const MAX_RETRIES: u32 = u32::MAX;

pub(crate) fn read(object: &Object<'_>, entries: &mut Vec<Entry>) {
    match object.kind {
        "VirtualService" => routes(object, entries),
        "DestinationRule" => limits(object, entries),
        _ => {}
    }
}

fn routes(object: &Object<'_>, entries: &mut Vec<Entry>) {
    let Some(routes) = object.node.at(&["spec", "http"]) else { return };
    for (at, route) in routes.items().iter().enumerate() {
        let mut fields = Fields::of(route, format!("{}.http[{at}]", object.path()));
        // They answer without calling anybody.
        if ["redirect", "directResponse"].iter().any(|name| fields.take(name).is_some()) {
            continue;
        }
        let mut entry = Entry::new(Format::Istio, EntryKind::Call, fields.path.clone(), name_or_whole(route));
        let remarks = &mut entry.remarks;
        let timeout = fields.duration("timeout", remarks, units::go, "10s");
        // No length is no limit.
        let timeout =
            timeout.map(|timeout| timeout.map(|length| if length.is_zero() { Limit::None } else { Limit::At(length) }));
        entry.settings.timeout = Some(timeout.unwrap_or(Setting::default(Limit::None)));
        match fields.take("retries") {
            Some(field) => {
                retries(&field, &mut entry);
                let conditions = route.get("match").map(Node::items).unwrap_or_default();
                if are_idempotent(conditions, |condition| condition.get("method")) {
                    entry.may_repeat_unsafe = Some(false);
                }
            }
            None => {
                backoff(&mut entry.settings, Setting::default(BASE));
                entry.settings.attempts = Some(Setting::default(Limit::At(DEFAULT_ATTEMPTS)));
                entry.may_repeat_unsafe = Some(false);
                entry.remarks.push(Remark {
                    kind: RemarkKind::Note,
                    path: fields.path.clone(),
                    span: entry.span,
                    text: format!(
                        "no retries block: Istio retries twice, on {DEFAULT_RETRY_ON}, unless the mesh has a \
                         defaultHttpRetryPolicy; `retries: {{attempts: 0}}` turns it off"
                    ),
                });
            }
        }
        if entry.settings.never_retries() {
            entry.kind = EntryKind::Timeout;
        } else if entry.settings.attempt_timeout.is_none() {
            entry.settings.attempt_timeout = entry.settings.timeout.map(|timeout| Setting::default(timeout.value));
        }
        entries.push(entry);
    }
}

/// The name of a route, or what it begins with.
fn name_or_whole(route: &Node) -> crate::position::Span {
    let first = route.members().first();
    let named = route.members().iter().find(|member| member.key == "name").or(first);
    match named {
        Some(member) => member.key_span,
        None => route.span,
    }
}

fn backoff(settings: &mut Settings, base: Setting<Duration>) {
    settings.base = Some(base);
    settings.cap = Some(Setting::default(Limit::At(base.value.saturating_mul(CAP_FACTOR))));
    settings.multiplier = Some(Setting::default(2.0));
    settings.jitter = Some(Setting::default(Jitter::Full));
}

fn retries(field: &Field<'_>, entry: &mut Entry) {
    entry.span = field.span();
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let mut fields = field.fields();
    let attempts = fields.count("attempts", remarks);
    // A stanza without a number means none.
    let attempts = attempts.unwrap_or(Setting::stated(0, field.span()));
    settings.attempts = Some(attempts.map(|retries| Limit::At(retries.saturating_add(1))));
    if attempts.value > 0 {
        let base = fields.duration("backoff", remarks, units::go, "25ms");
        backoff(settings, base.unwrap_or(Setting::default(BASE)));
    }
    let per_try = fields.duration("perTryTimeout", remarks, units::go, "2s");
    settings.attempt_timeout =
        per_try.map(|length| length.map(|length| if length.is_zero() { Limit::None } else { Limit::At(length) }));
    let conditions = fields.take("retryOn");
    let words = conditions.as_ref().map(Field::words).unwrap_or_default();
    entry.may_repeat_unsafe = Some(repeats_unsafe(&words));
    fields.unmapped(
        &[
            ("retryRemoteLocalities", "whether other regions are tried as well"),
            ("retryIgnorePreviousHosts", "whether the host of the attempt before is tried again"),
        ],
        remarks,
    );
    fields.finish(remarks);
}

fn limits(object: &Object<'_>, entries: &mut Vec<Entry>) {
    let Some(spec) = object.node.get("spec") else { return };
    let policies = spec.get("trafficPolicy").map(|policy| (format!("{}.trafficPolicy", object.path()), policy));
    let subsets = spec.get("subsets").map(Node::items).unwrap_or_default().iter().enumerate();
    let subsets = subsets.filter_map(|(at, subset)| {
        Some((format!("{}.subsets[{at}].trafficPolicy", object.path()), subset.get("trafficPolicy")?))
    });
    for (path, policy) in policies.into_iter().chain(subsets) {
        limit(path, policy, entries);
    }
}

fn limit(path: String, policy: &Node, entries: &mut Vec<Entry>) {
    let mut entry = Entry::new(Format::Istio, EntryKind::Limit, path.clone(), policy.span);
    let mut budget = Setting::default(RetryBudget::Unlimited);
    if let Some(pool) = policy.at(&["connectionPool", "http"]) {
        let mut fields = Fields::of(pool, format!("{path}.connectionPool.http"));
        if let Some(retries) = fields.count("maxRetries", &mut entry.remarks) {
            budget = retries.map(|retries| match retries {
                MAX_RETRIES => RetryBudget::Unlimited,
                retries => RetryBudget::Concurrent(retries),
            });
        }
    }
    if let Some(field) = Fields::of(policy, path).take("retryBudget") {
        let mut fields = field.fields();
        let percent = fields.number("percent", &mut entry.remarks);
        let least = fields.count("minRetryConcurrency", &mut entry.remarks);
        budget = Setting::stated(
            RetryBudget::ShareOfActive {
                ratio: Setting::value_or(percent, 20.0) / 100.0,
                least: Setting::value_or(least, 3),
            },
            field.span(),
        );
        fields.finish(&mut entry.remarks);
    }
    entry.settings.budget = Some(budget);
    entries.push(entry);
}
