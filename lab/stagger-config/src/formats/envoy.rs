//! Envoy's `RetryPolicy`, wherever it stands: in a static configuration, a resource, a config dump, or what another
//! system writes for Envoy.
//!
//! Read on envoyproxy.io: router filter, `circuit_breaker.proto`, `backoff.proto`, version 1.39.

use core::time::Duration;

use stagger_core::Jitter;

use super::http::{admits_idempotent, repeats_unsafe};
use crate::entry::{Entry, EntryKind, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::{Node, Value};
use crate::units;

const BASE: Duration = Duration::from_millis(25);
/// Of what Envoy itself fetches.
const FETCH_BASE: Duration = Duration::from_secs(1);
const CAP_FACTOR: u32 = 10;
const RETRIES: u32 = 1;
/// What a route has if it says nothing, except in a policy that is not a route's.
const ROUTE_TIMEOUT: Duration = Duration::from_secs(15);
const CONCURRENT_RETRIES: u32 = 3;

const POLICY: [&str; 2] = ["retry_policy", "retryPolicy"];

/// The conditions that Envoy knows, of HTTP and of gRPC.
const CONDITIONS: [&str; 19] = [
    "5xx",
    "gateway-error",
    "reset",
    "reset-before-request",
    "connect-failure",
    "envoy-ratelimited",
    "retriable-4xx",
    "refused-stream",
    "retriable-status-codes",
    "retriable-headers",
    "http3-post-connect-failure",
    "cancelled",
    "deadline-exceeded",
    "internal",
    "resource-exhausted",
    "unavailable",
    "unknown",
    "aborted",
    "failed-precondition",
];

/// Returns whether a document has a retry policy of Envoy somewhere. The parser limits the depth.
pub(crate) fn has_policy(node: &Node) -> bool {
    match &node.value {
        Value::Map(members) => members.iter().any(|member| {
            let is_policy = POLICY.contains(&&*member.key) && matches!(member.node.value, Value::Map(_));
            is_policy || has_policy(&member.node)
        }),
        Value::List(items) => items.iter().any(has_policy),
        Value::Null | Value::Scalar { .. } => false,
    }
}

/// What the places above a policy say.
#[derive(Clone, Copy)]
struct Around<'a> {
    /// The innermost mapping.
    parent: &'a Node,
    /// The mapping that the file is about, which has the clusters.
    budget: Setting<RetryBudget>,
    /// Whether the route is for idempotent methods only.
    is_idempotent: bool,
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut budgets = Vec::new();
    cluster_budgets(document, &mut budgets);
    // One that all clusters share; several cannot be told apart by the policies.
    let budget = match budgets[..] {
        [] => Some(Setting::default(RetryBudget::Concurrent(CONCURRENT_RETRIES))),
        [first, ref rest @ ..] if rest.iter().all(|other| other.value == first.value) => Some(first),
        _ => None,
    };
    let around = Around {
        parent: document,
        budget: budget.unwrap_or(Setting::default(RetryBudget::Concurrent(CONCURRENT_RETRIES))),
        is_idempotent: false,
    };
    walk(document, "", around, &mut entries);
    entries
}

fn walk(node: &Node, path: &str, around: Around<'_>, entries: &mut Vec<Entry>) {
    match &node.value {
        Value::Map(members) => {
            let is_idempotent = match node.get("match") {
                Some(condition) => is_for_idempotent_methods(condition),
                None => around.is_idempotent,
            };
            let around = Around { parent: node, is_idempotent, ..around };
            for member in members {
                let path = crate::fields::join(path, &member.key);
                if POLICY.contains(&&*member.key) && matches!(member.node.value, Value::Map(_)) {
                    let field = Field { path, key_span: member.key_span, node: &member.node };
                    entries.extend(policy(&field, around));
                } else {
                    walk(&member.node, &path, around, entries);
                }
            }
        }
        Value::List(items) => {
            for (at, item) in items.iter().enumerate() {
                walk(item, &format!("{path}[{at}]"), around, entries);
            }
        }
        Value::Null | Value::Scalar { .. } => {}
    }
}

/// Returns whether the condition of a route admits idempotent methods only.
fn is_for_idempotent_methods(condition: &Node) -> bool {
    let headers = condition.get("headers").map(Node::items).unwrap_or_default();
    let is_negated = |header: &Node| ["invert_match", "invertMatch"].iter().any(|name| header.get(name).is_some());
    headers
        .iter()
        .any(|header| header.text_of("name") == Some(":method") && !is_negated(header) && admits_idempotent(header))
}

/// Finds what the circuit breakers of clusters allow.
fn cluster_budgets(node: &Node, found: &mut Vec<Setting<RetryBudget>>) {
    match &node.value {
        Value::Map(members) => {
            for member in members {
                if matches!(&*member.key, "circuit_breakers" | "circuitBreakers") {
                    let thresholds = Fields::of(&member.node, "").take("thresholds");
                    if let Some(thresholds) = thresholds
                        && let Some(first) = thresholds.node.items().first()
                    {
                        found.extend(threshold(first));
                    }
                } else {
                    cluster_budgets(&member.node, found);
                }
            }
        }
        Value::List(items) => items.iter().for_each(|item| cluster_budgets(item, found)),
        Value::Null | Value::Scalar { .. } => {}
    }
}

fn threshold(node: &Node) -> Option<Setting<RetryBudget>> {
    let mut fields = Fields::of(node, "");
    let mut ignored = Vec::new();
    if let Some(field) = fields.take("retry_budget") {
        let mut inner = field.fields();
        let percent = inner.read("budget_percent", |field| unwrapped(field).number(&mut ignored));
        let least = inner.read("min_retry_concurrency", |field| unwrapped(field).count(&mut ignored));
        let ratio = Setting::value_or(percent, 20.0) / 100.0;
        let least = Setting::value_or(least, CONCURRENT_RETRIES);
        return Some(Setting::stated(RetryBudget::ShareOfActive { ratio, least }, field.span()));
    }
    let retries = fields.read("max_retries", |field| unwrapped(field).count(&mut ignored))?;
    // What Istio writes into its clusters: no limit.
    Some(
        retries
            .map(|retries| if retries == u32::MAX { RetryBudget::Unlimited } else { RetryBudget::Concurrent(retries) }),
    )
}

/// Returns what `{"value": 2}` contains, as some writers of JSON have numbers that may be absent.
fn unwrapped<'a>(field: &Field<'a>) -> Field<'a> {
    match field.node.get("value") {
        Some(node) => Field { node, ..field.clone() },
        None => field.clone(),
    }
}

/// Reads a length: `0.025s`, or the whole nanoseconds or `{"seconds": …}` that dumps of Go have.
fn duration(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Option<Setting<Duration>> {
    if let (seconds @ Some(_), nanos) | (seconds, nanos @ Some(_)) =
        (field.node.get("seconds"), field.node.get("nanos"))
    {
        let part = |node: Option<&Node>| match node {
            Some(node) => node.text().unwrap_or("0").parse::<u64>().ok(),
            None => Some(0),
        };
        let length = Duration::from_secs(part(seconds)?).checked_add(Duration::from_nanos(part(nanos)?))?;
        return Some(Setting::stated(length, field.span()));
    }
    let parse = |text: &str| {
        let nanoseconds = text.parse::<u64>().ok().map(Duration::from_nanos);
        units::protobuf(text).or(nanoseconds)
    };
    field.parse(remarks, "a length of time, such as 0.025s", parse)
}

/// Returns the time limit of the route that has a policy; of a virtual host, the longest of its routes.
fn route_timeout(parent: &Node, remarks: &mut Vec<Remark>) -> Setting<Limit<Duration>> {
    let mut fields = Fields::of(parent, "");
    let routes: Vec<&Node> = fields.take("routes").map(|field| field.node.items().iter().collect()).unwrap_or_default();
    let inner = routes.iter().filter_map(|route| route.get("route"));
    let longest = inner
        .map(|route| route_timeout(route, remarks))
        .max_by_key(|timeout| timeout.value.at().unwrap_or(Duration::MAX));
    if let Some(longest) = longest {
        return longest;
    }
    let timeout = fields.read("timeout", |field| duration(field, remarks));
    // Ambassador's and Emissary's dialect.
    let in_ms = fields.count("timeout_ms", remarks);
    let in_ms = in_ms.map(|ms| ms.map(|ms| Duration::from_millis(ms.into())));
    let timeout = timeout.or(in_ms);
    let timeout = timeout.unwrap_or(Setting::default(ROUTE_TIMEOUT));
    timeout.map(|length| if length.is_zero() { Limit::None } else { Limit::At(length) })
}

fn policy(field: &Field<'_>, around: Around<'_>) -> Option<Entry> {
    let mut fields = field.fields();
    let path = field.path.clone();
    let conditions = fields.take("retry_on");
    // A message with the same name, for what Envoy itself fetches, has no conditions.
    let is_fetch = conditions.is_none() && fields.take("retry_back_off").is_some();
    let mut fields = field.fields();
    let _ = fields.take("retry_on");
    let kind = if is_fetch { EntryKind::Fetch } else { EntryKind::Call };
    let mut entry = Entry::new(Format::Envoy, kind, path, field.span());
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let words = conditions.as_ref().map(Field::words).unwrap_or_default();
    let retries = fields.read("num_retries", |field| unwrapped(field).count(remarks));
    let retries = retries.unwrap_or(Setting::default(RETRIES));
    settings.attempts = Some(retries.map(|retries| Limit::At(retries.saturating_add(1))));
    let backoff = fields.take("retry_back_off").map(|field| field.fields());
    let (mut base, mut cap) = (None, None);
    if let Some(mut backoff) = backoff {
        base = backoff.read("base_interval", |field| duration(field, remarks));
        cap = backoff.read("max_interval", |field| duration(field, remarks));
        backoff.finish(remarks);
    }
    let base = base.unwrap_or(Setting::default(if is_fetch { FETCH_BASE } else { BASE }));
    settings.base = Some(base);
    settings.cap = Some(cap.unwrap_or(Setting::default(base.value.saturating_mul(CAP_FACTOR))).map(Limit::At));
    settings.multiplier = Some(Setting::default(2.0));
    settings.jitter = Some(Setting::default(Jitter::Full));
    if is_fetch {
        fields.finish(remarks);
        return Some(entry);
    }
    settings.budget = Some(around.budget);
    settings.timeout = Some(route_timeout(around.parent, remarks));
    let per_try = fields.read("per_try_timeout", |field| duration(field, remarks));
    settings.attempt_timeout = per_try.map(|length| length.map(Limit::At));
    if let Some(conditions) = &conditions {
        let unknown = words.iter().filter(|word| !CONDITIONS.contains(word) && word.parse::<u16>().is_err());
        remarks.extend(unknown.map(|word| {
            conditions.remark(RemarkKind::NoEffect, format!("Envoy knows no condition `{word}`, and ignores it"))
        }));
    }
    if words.is_empty() {
        remarks.push(
            field
                .remark(RemarkKind::Note, "no retry_on: nothing is retried unless the headers of a request ask for it"),
        );
    }
    entry.may_repeat_unsafe = Some(repeats_unsafe(&words) && !around.is_idempotent);
    let unmapped = [
        ("per_try_idle_timeout", "limits the silence within an attempt"),
        ("rate_limited_retry_back_off", "a server's hint replaces the delay"),
        ("retry_host_predicate", "which hosts are tried"),
        ("retry_priority", "which priorities are tried"),
        ("host_selection_retry_max_attempts", "how often another host is looked for"),
        ("retriable_status_codes", "which status codes are retried"),
        ("retriable_headers", "which answers are retried, by their headers"),
        ("retriable_request_headers", "which requests are retried, by their headers"),
        ("retry_options_predicates", "what extensions decide"),
    ];
    fields.unmapped(&unmapped, remarks);
    fields.finish(remarks);
    Some(entry)
}
