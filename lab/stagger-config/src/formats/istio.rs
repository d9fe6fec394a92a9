//! Istio: `VirtualService` and `DestinationRule`.
//!
//! Read in `retry.go`, `cluster_traffic_policy.go` and `validation.go` of Istio 1.29.
//!
//! | field | default | 0, empty | ignored | refused |
//! |---|---|---|---|---|
//! | `retries` | 2, on `connect-failure,refused-stream,…` | | in a redirect, a direct response | |
//! | `retries.attempts` | 0 in a stanza | 0: no retry | | negative |
//! | `perTryTimeout` | that of the route | 0: no limit | | beside `attempts: 0` |
//! | `retryOn` | as above | empty: as above | | beside `attempts: 0`; other words |
//! | `retryRemoteLocalities` | false | | | beside `attempts: 0` |
//! | `backoff` | 25 ms, the cap ten times that | | | |
//! | `timeout` | no limit | 0: no limit | | |
//! | `maxRetries` of the pool | no limit; in a subset that of the rule | 0: no limit | | negative |
//! | `retryBudget` | none; 20 %, at least 3 in a stanza | | | |

use core::time::Duration;

use stagger_core::Jitter;

use super::envoy::CONDITIONS;
use super::http::{are_idempotent, repeats_unsafe};
use super::object::Object;
use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting, Settings};
use crate::fields::{Field, Fields, shortened};
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
        let before = entries.len();
        self::route(object, at, route, entries);
        if let Some(entry) = entries.get_mut(before) {
            misplaced(object, at, route, &mut entry.remarks);
        }
    }
}

/// Says what stands beside a route or in a destination of it, where Istio knows no such fields.
fn misplaced(object: &Object<'_>, at: usize, route: &Node, remarks: &mut Vec<Remark>) {
    let mut places = Vec::new();
    if let Some(spec) = object.node.get("spec").filter(|_| at == 0) {
        places.push((format!("{}.spec", object.path()), spec));
    }
    for (nth, destination) in route.get("route").map(Node::items).unwrap_or_default().iter().enumerate() {
        let path = format!("{}.http[{at}].route[{nth}]", object.path());
        places.extend(destination.get("destination").map(|inner| (format!("{path}.destination"), inner)));
        places.push((path, destination));
    }
    for (path, node) in places {
        let mut fields = Fields::of(node, path);
        for field in ["retries", "timeout"].iter().filter_map(|name| fields.take(name)) {
            let text = "Istio knows no such field here; write it beside `route`";
            remarks.push(field.remark(RemarkKind::NoEffect, text));
        }
    }
}

fn route(object: &Object<'_>, at: usize, route: &Node, entries: &mut Vec<Entry>) {
    let mut fields = Fields::of(route, format!("{}.http[{at}]", object.path()));
    // They answer without calling anybody.
    if ["redirect", "directResponse"].iter().any(|name| fields.take(name).is_some()) {
        return;
    }
    let mut entry = Entry::new(Format::Istio, EntryKind::Call, fields.path.clone(), name_or_whole(route));
    let remarks = &mut entry.remarks;
    let timeout = fields.duration("timeout", remarks, units::go, "10s");
    entry.settings.timeout = Some(timeout.map(unless_zero).flat_or(Limit::None));
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

/// No length is no limit.
fn unless_zero(length: Duration) -> Limit<Duration> {
    if length.is_zero() { Limit::None } else { Limit::At(length) }
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
    // A stanza without a number means none.
    let attempts = fields.count("attempts", remarks).or_else(Found::Known(Setting::stated(0, field.span())));
    settings.attempts = Some(attempts.retries_or(0));
    if settings.never_retries() {
        const OTHERS: [&str; 3] = ["perTryTimeout", "retryOn", "retryRemoteLocalities"];
        let mut others = field.fields();
        if let Some(other) = OTHERS.iter().find_map(|name| others.take(name)) {
            let text = "nothing may be set beside attempts: 0, the webhook of Istio refuses it; leave this out";
            remarks.push(other.remark(RemarkKind::Invalid, text));
        }
    }
    let base = fields.duration("backoff", remarks, units::go, "25ms");
    if !settings.never_retries()
        && let Some(base) = base.or(BASE)
    {
        backoff(settings, base);
    }
    let per_try = fields.duration("perTryTimeout", remarks, units::go, "2s");
    settings.attempt_timeout = per_try.map(unless_zero).flat();
    let conditions = fields.take("retryOn");
    let words = conditions.as_ref().map(Field::words).unwrap_or_default();
    for word in &words {
        // Istio takes conditions of Envoy, and status codes.
        if !CONDITIONS.contains(word) && !word.parse::<u16>().is_ok_and(|code| (100..600).contains(&code)) {
            remarks.extend(conditions.as_ref().map(|conditions| {
                let text = format!("`{}` is no condition: the webhook of Istio refuses it", shortened(word));
                conditions.remark(RemarkKind::Invalid, text)
            }));
        }
    }
    entry.may_repeat_unsafe = match &conditions {
        _ if repeats_unsafe(&words) => Some(true),
        Some(conditions) if conditions.has_unknown() => None,
        _ => Some(false),
    };
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
    // A subset inherits the pool and the budget that it does not set itself.
    let whole = spec.get("trafficPolicy");
    for (path, policy) in policies.into_iter().chain(subsets) {
        limit(path, policy, whole, entries);
    }
}

fn limit(path: String, policy: &Node, whole: Option<&Node>, entries: &mut Vec<Entry>) {
    let mut entry = Entry::new(Format::Istio, EntryKind::Limit, path.clone(), policy.span);
    let mut budget = Some(Setting::default(RetryBudget::Unlimited));
    let pool = policy.get("connectionPool").or(whole.and_then(|whole| whole.get("connectionPool")));
    if let Some(pool) = pool.and_then(|pool| pool.get("http")) {
        let mut fields = Fields::of(pool, format!("{path}.connectionPool.http"));
        let retries = fields.count("maxRetries", &mut entry.remarks).map(|retries| match retries {
            // No number, and what Istio writes itself.
            0 | MAX_RETRIES => RetryBudget::Unlimited,
            retries => RetryBudget::Concurrent(retries),
        });
        budget = retries.or(RetryBudget::Unlimited);
    }
    let retry_budget = Fields::of(policy, path.clone()).take("retryBudget");
    let of_whole = || Fields::of(whole?, path).take("retryBudget");
    if let Some(field) = retry_budget.or_else(of_whole) {
        let mut fields = field.fields();
        let percent = fields.number("percent", &mut entry.remarks);
        let least = fields.count("minRetryConcurrency", &mut entry.remarks);
        budget = match (percent.or(20.0), least.or(3)) {
            (Some(percent), Some(least)) => {
                let budget = RetryBudget::ShareOfActive { ratio: percent.value / 100.0, least: least.value };
                Some(Setting::stated(budget, field.span()))
            }
            _ => None,
        };
        fields.finish(&mut entry.remarks);
    }
    entry.settings.budget = budget;
    entries.push(entry);
}
