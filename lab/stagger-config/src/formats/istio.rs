//! Istio: `VirtualService` and `DestinationRule`.
//!
//! Read in `retry.go`, `route.go`, `cluster_traffic_policy.go`, `destination_rule.go` and `validation.go` of Istio
//! 1.30.
//!
//! | field | default | 0, empty | ignored | refused |
//! |---|---|---|---|---|
//! | `retries` | 2, on `connect-failure,refused-stream,…` | | in a redirect, a direct response | |
//! | `retries.attempts` | 0 in a stanza | 0: no retry | | negative |
//! | `perTryTimeout` | that of the route | | | beside `attempts: 0`; below 1 ms; parts of one |
//! | `retryOn` | as above | empty: as above | | beside `attempts: 0`; other words; spaces |
//! | `retryRemoteLocalities` | false | | | beside `attempts: 0` |
//! | `backoff` | 25 ms, the cap ten times that | | | below 1 ms; parts of one |
//! | `timeout` | no limit | | | below 1 ms; parts of one |
//! | `maxRetries` of the pool | no limit; in a subset that of the rule | 0: no limit | | negative |
//! | `retryBudget` | none; 20 % in a stanza | | in `portLevelSettings` | |
//! | `minRetryConcurrency` | 3 | 0: 3 | | negative |
//! | `portLevelSettings` | those of all ports | | | |
//!
//! What the settings of a port do not say is a default: they inherit nothing of the pool of all ports.

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
/// What a retry budget without numbers has.
const PERCENT: f64 = 20.0;
const LEAST: u32 = 3;
/// The largest number that Istio takes: no limit.
pub(crate) const UNLIMITED: u32 = i32::MAX as u32;

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
    // They answer without calling anybody, and a delegate says the rest in another object.
    let is_delegated = fields.take("delegate").is_some() && route.get("retries").is_none();
    if is_delegated || ["redirect", "directResponse"].iter().any(|name| fields.take(name).is_some()) {
        return;
    }
    let mut entry = Entry::new(Format::Istio, EntryKind::Call, fields.path.clone(), name_or_whole(route));
    let remarks = &mut entry.remarks;
    let timeout = fields.read("timeout", |field| length(field, remarks));
    entry.settings.timeout = Some(timeout.limit_or(Limit::None));
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

/// Reads a length of time, of which Istio takes whole milliseconds.
fn length(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<Duration> {
    let parse =
        |text: &str| units::go(text).filter(|length| !length.is_zero() && length.subsec_nanos() % 1_000_000 == 0);
    field.parse(remarks, "a length of whole milliseconds, such as 10s, and the webhook refuses it", parse)
}

/// Returns whether a word of `retryOn` is a status that Go has a text for, which is how Istio tells them.
fn is_status(word: &str) -> bool {
    let code = word.strip_prefix('+').unwrap_or(word);
    matches!(
        code.parse::<u16>(),
        Ok(
            100..=103
            | 200..=208
            | 226
            | 300..=305
            | 307
            | 308
            | 400..=418
            | 421..=426
            | 428
            | 429
            | 431
            | 451
            | 500..=508
            | 510
            | 511,
        )
    )
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
    let base = fields.read("backoff", |field| length(field, remarks));
    if !settings.never_retries()
        && let Some(base) = base.or(BASE)
    {
        backoff(settings, base);
    }
    settings.attempt_timeout = fields.read("perTryTimeout", |field| length(field, remarks)).limit();
    let conditions = fields.take("retryOn");
    let words = conditions.as_ref().map(Field::words).unwrap_or_default();
    if let Some(conditions) = &conditions
        && let Some(text) = conditions.text().filter(|text| !text.is_empty())
    {
        // Conditions of Envoy, and status codes; a space before a word is part of it.
        for word in text.split(',').filter(|word| !CONDITIONS.contains(word) && !is_status(word)) {
            let text = format!("`{}` is no condition: the webhook of Istio refuses it", shortened(word));
            remarks.push(conditions.remark(RemarkKind::Invalid, text));
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
    let whole = spec.get("trafficPolicy");
    if let Some(policy) = whole {
        let path = format!("{}.trafficPolicy", object.path());
        limit(&path, policy, Inherited::NOTHING, entries);
        for (path, port) in ports(path, policy) {
            limit(&path, port, Inherited::NOTHING, entries);
        }
    }
    for (at, subset) in spec.get("subsets").map(Node::items).unwrap_or_default().iter().enumerate() {
        let Some(policy) = subset.get("trafficPolicy") else { continue };
        let path = format!("{}.subsets[{at}].trafficPolicy", object.path());
        let of = |name: &str| whole.and_then(|whole| whole.get(name));
        let inherited = Inherited { pool: of("connectionPool"), budget: of("retryBudget") };
        limit(&path, policy, inherited, entries);
        for (path, port) in ports(path, policy) {
            limit(&path, port, Inherited { pool: None, budget: inherited.budget }, entries);
        }
    }
}

/// The settings of single ports.
fn ports(path: String, policy: &Node) -> Vec<(String, &Node)> {
    let ports = Fields::of(policy, path).take("portLevelSettings");
    ports.map(|field| field.items()).unwrap_or_default()
}

/// What a policy has of another one, where it says nothing itself.
#[derive(Clone, Copy)]
struct Inherited<'a> {
    pool: Option<&'a Node>,
    budget: Option<&'a Node>,
}

impl Inherited<'_> {
    const NOTHING: Self = Self { pool: None, budget: None };
}

fn limit(path: &str, policy: &Node, inherited: Inherited<'_>, entries: &mut Vec<Entry>) {
    let mut entry = Entry::new(Format::Istio, EntryKind::Limit, path, policy.span);
    let remarks = &mut entry.remarks;
    let mut budget = Some(Setting::default(RetryBudget::Unlimited));
    let pool = policy.get("connectionPool").or(inherited.pool);
    if let Some(pool) = pool.and_then(|pool| pool.get("http")) {
        let mut fields = Fields::of(pool, format!("{path}.connectionPool.http"));
        let retries = fields.count("maxRetries", remarks).map(|retries| match retries {
            // 0 is no number.
            0 | UNLIMITED.. => RetryBudget::Unlimited,
            retries => RetryBudget::Concurrent(retries),
        });
        budget = retries.or(RetryBudget::Unlimited);
    }
    let is_port = path.ends_with(']');
    let own = Fields::of(policy, path).take("retryBudget");
    if let Some(own) = own.as_ref().filter(|_| is_port) {
        remarks
            .push(own.remark(RemarkKind::NoEffect, "Istio knows no such field of a port; write it beside the ports"));
    }
    let of_whole = |node| Field { path: format!("{path}.retryBudget"), key_span: policy.span, node };
    if let Some(field) = own.filter(|_| !is_port).or(inherited.budget.map(of_whole)) {
        let mut fields = field.fields();
        let percent = fields.number("percent", remarks);
        let least = fields.count("minRetryConcurrency", remarks).map(|least| if least == 0 { LEAST } else { least });
        budget = match (percent.or(PERCENT), least.or(LEAST)) {
            (Some(percent), Some(least)) => {
                let budget = RetryBudget::ShareOfActive { ratio: percent.value / 100.0, least: least.value };
                Some(Setting::stated(budget, field.span()))
            }
            _ => None,
        };
        fields.finish(remarks);
    }
    entry.settings.budget = budget;
    entries.push(entry);
}
