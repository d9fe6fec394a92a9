//! Envoy's `RetryPolicy`, wherever it stands: in a static configuration, a resource, a config dump, or what another
//! system writes for Envoy.
//!
//! Read on envoyproxy.io: router filter, `route_components.proto`, `circuit_breaker.proto`, `backoff.proto`, and in
//! `retry_policy_impl.cc`; Envoy 1.39.
//!
//! | field | default | 0, empty | ignored | refused |
//! |---|---|---|---|---|
//! | `retry_on` | nothing is retried | empty: the same | words that Envoy does not know | |
//! | `num_retries` | 1 | 0: no retry | | no whole number |
//! | `base_interval` | 25 ms; 1 s of what Envoy fetches | below 1 ms: 1 ms | | 0, and absent in `retry_back_off` |
//! | `max_interval` | ten times `base_interval` | | | below `base_interval` |
//! | `per_try_timeout` | that of the route | 0: that of the route | | |
//! | `timeout` of the route | 15 s | 0: no limit | | |
//! | `retriable_status_codes` | none | | without `retriable-status-codes` in `retry_on` | |
//! | `retriable_headers` | none | | without `retriable-headers` in `retry_on` | |
//! | `max_retries` of the cluster | 3, of each priority | 0: no retry passes | by other clusters and priorities | |
//! | `retry_budget` of the cluster | 20 %, at least 3 | | as `max_retries`, which it replaces | |
//! | `hedge_policy` | | | | not read, and named |

use core::time::Duration;
use std::collections::{HashMap, HashSet};

use stagger_core::Jitter;

use super::http::{admits_idempotent, repeats_unsafe};
use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{Field, Fields};
use crate::format::Format;
use crate::tree::{Member, Node, Value};
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
pub(super) const CONDITIONS: [&str; 19] = [
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

/// Fields of a policy that no other system has together under this name.
const FIELDS: [&str; 10] = [
    "retry_on",
    "num_retries",
    "retry_back_off",
    "per_try_timeout",
    "per_try_idle_timeout",
    "retriable_status_codes",
    "retriable_headers",
    "retry_host_predicate",
    "retry_priority",
    "host_selection_retry_max_attempts",
];

/// What stands around policies in configurations of Envoy.
const AROUND: [&str; 12] = [
    "static_resources",
    "virtual_hosts",
    "route_config",
    "http_filters",
    "filter_chains",
    "typed_config",
    "load_assignment",
    "circuit_breakers",
    "weighted_clusters",
    "lb_policy",
    "cluster",
    "@type",
];

/// Returns whether a document has a retry policy of Envoy: by two marks that other systems do not share, of which the
/// name of the policy is none, because many systems have it.
pub(crate) fn has_policy(document: &Node) -> bool {
    let mut marks = HashSet::new();
    has_policy_within(document, &mut marks) && marks.len() >= 2
}

/// Collects the marks. The parser limits the depth.
fn has_policy_within(node: &Node, marks: &mut HashSet<&'static str>) -> bool {
    match &node.value {
        Value::Map(members) => {
            let mut has_policy = false;
            for member in members {
                marks.extend(AROUND.iter().find(|name| is_named(&member.key, name)));
                if is_policy(member) {
                    has_policy = true;
                    let mut fields = Fields::of(&member.node, "");
                    marks.extend(FIELDS.iter().filter(|name| fields.take(name).is_some()));
                } else {
                    has_policy |= has_policy_within(&member.node, marks);
                }
            }
            has_policy
        }
        Value::List(items) => {
            // Each of them may have marks.
            let mut has_policy = false;
            for item in items {
                has_policy |= has_policy_within(item, marks);
            }
            has_policy
        }
        Value::Null | Value::Unknown | Value::Scalar { .. } => false,
    }
}

/// Returns whether a key is this name, also as JSON has it: `retryPolicy` for `retry_policy`.
fn is_named(key: &str, name: &str) -> bool {
    key == name || key.len() < name.len() && !key.contains('_') && key.eq_ignore_ascii_case(&name.replace('_', ""))
}

fn is_policy(member: &Member) -> bool {
    POLICY.contains(&&*member.key) && matches!(member.node.value, Value::Map(_))
}

/// Returns whether a document is a bootstrap: it has resources, and what belongs into them.
pub(crate) fn is_bootstrap(document: &Node) -> bool {
    const PARTS: [&str; 7] =
        ["listeners", "clusters", "secrets", "lds_config", "cds_config", "ads_config", "deprecated_v1"];
    let mut fields = Fields::of(document, "");
    let resources = ["static_resources", "dynamic_resources"].map(|name| fields.take(name));
    resources.iter().flatten().any(|resources| {
        let mut fields = resources.fields();
        PARTS.iter().any(|name| fields.take(name).is_some())
    })
}

/// What the circuit breakers of clusters allow, by the names of the clusters and for the two priorities of requests;
/// `None` if it is not known.
type Budgets<'a> = HashMap<&'a str, [Option<Setting<RetryBudget>>; 2]>;

const DEFAULT_BUDGET: Setting<RetryBudget> = Setting::default(RetryBudget::Concurrent(CONCURRENT_RETRIES));

/// What the places above a policy say.
#[derive(Clone, Copy)]
struct Around<'a> {
    /// The innermost mapping.
    parent: &'a Node,
    /// The circuit breakers of the whole file.
    budgets: &'a Budgets<'a>,
    /// Whether the route is for idempotent methods only.
    is_idempotent: bool,
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut budgets = Budgets::new();
    cluster_budgets(document, &mut budgets);
    let around = Around { parent: document, budgets: &budgets, is_idempotent: false };
    walk(document, "", around, &mut entries);
    entries
}

/// Returns the budget of the clusters that requests of a route, or of all routes of a virtual host, go to; `None` if
/// they differ, or are chosen by a request.
fn budget(parent: &Node, budgets: &Budgets<'_>) -> Option<Setting<RetryBudget>> {
    let mut fields = Fields::of(parent, "");
    let routes: Vec<&Node> = match fields.take("routes") {
        Some(routes) => routes.node.items().iter().filter_map(|route| route.get("route")).collect(),
        None => vec![parent],
    };
    let mut found: Option<Setting<RetryBudget>> = None;
    for route in routes {
        let mut fields = Fields::of(route, "");
        let is_high = fields.take("priority").is_some_and(|priority| matches!(priority.text(), Some("HIGH" | "1")));
        let mut names: Vec<&str> = fields.take("cluster").and_then(|cluster| cluster.text()).into_iter().collect();
        if let Some(weighted) = fields.take("weighted_clusters") {
            let clusters = weighted.fields().take("clusters");
            let clusters = clusters.as_ref().map(|clusters| clusters.node.items()).unwrap_or_default();
            names.extend(clusters.iter().filter_map(|cluster| cluster.text_of("name")));
        }
        if fields.take("cluster_header").is_some() || fields.take("cluster_specifier_plugin").is_some() {
            return None;
        }
        for name in names {
            let of_cluster = match budgets.get(name) {
                Some(of_priorities) => of_priorities[usize::from(is_high)]?,
                None => DEFAULT_BUDGET,
            };
            match found {
                Some(other) if other.value != of_cluster.value => return None,
                _ => found = Some(of_cluster),
            }
        }
    }
    if found.is_none() {
        // A fragment that names no cluster goes with the clusters beside it, if these agree.
        let mut all = budgets.values().map(|of_priorities| of_priorities[0]);
        let first = all.next().unwrap_or(Some(DEFAULT_BUDGET))?;
        return if all.all(|other| other.is_some_and(|other| other.value == first.value)) { Some(first) } else { None };
    }
    found
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
                if is_policy(member) {
                    let field = Field { path, key_span: member.key_span, node: &member.node };
                    entries.push(policy(&field, around));
                } else if is_named(&member.key, "hedge_policy") {
                    let field = Field { path, key_span: member.key_span, node: &member.node };
                    let mut entry = Entry::new(Format::Envoy, EntryKind::Unread, field.path.clone(), field.span());
                    let text = "hedges, which are more requests while the first one waits, are not read";
                    entry.remarks.push(field.remark(RemarkKind::NotRead, text));
                    entries.push(entry);
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
        Value::Null | Value::Unknown | Value::Scalar { .. } => {}
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

/// Finds what the circuit breakers of clusters allow. The parser limits the depth.
fn cluster_budgets<'a>(node: &'a Node, found: &mut Budgets<'a>) {
    match &node.value {
        Value::Map(members) => {
            let mut fields = Fields::of(node, "");
            if let Some(breakers) = fields.take("circuit_breakers") {
                let thresholds = breakers.fields().take("thresholds");
                let thresholds = thresholds.as_ref().map(|thresholds| thresholds.node.items()).unwrap_or_default();
                let mut budgets = [Some(DEFAULT_BUDGET); 2];
                // The first one of a priority counts.
                for node in thresholds.iter().rev() {
                    let priority = Fields::of(node, "").take("priority");
                    let is_high = priority.is_some_and(|priority| matches!(priority.text(), Some("HIGH" | "1")));
                    budgets[usize::from(is_high)] = threshold(node);
                }
                found.insert(node.text_of("name").unwrap_or_default(), budgets);
            }
            members.iter().for_each(|member| cluster_budgets(&member.node, found));
        }
        Value::List(items) => items.iter().for_each(|item| cluster_budgets(item, found)),
        Value::Null | Value::Unknown | Value::Scalar { .. } => {}
    }
}

fn threshold(node: &Node) -> Option<Setting<RetryBudget>> {
    let mut fields = Fields::of(node, "");
    let mut ignored = Vec::new();
    if let Some(field) = fields.take("retry_budget") {
        let mut inner = field.fields();
        let percent = inner.read("budget_percent", |field| unwrapped(field).number(&mut ignored));
        let least = inner.read("min_retry_concurrency", |field| unwrapped(field).count(&mut ignored));
        let (percent, least) = (percent.or(20.0)?.value, least.or(CONCURRENT_RETRIES)?.value);
        return Some(Setting::stated(RetryBudget::ShareOfActive { ratio: percent / 100.0, least }, field.span()));
    }
    let retries = fields.read("max_retries", |field| unwrapped(field).count(&mut ignored)).or(CONCURRENT_RETRIES)?;
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
fn duration(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<Duration> {
    if let (seconds @ Some(_), nanos) | (seconds, nanos @ Some(_)) =
        (field.node.get("seconds"), field.node.get("nanos"))
    {
        let part = |node: Option<&Node>| match node {
            Some(node) => node.text().unwrap_or("0").parse::<u64>().ok(),
            None => Some(0),
        };
        let length = match (part(seconds), part(nanos)) {
            (Some(seconds), Some(nanos)) => Duration::from_secs(seconds).checked_add(Duration::from_nanos(nanos)),
            _ => None,
        };
        return match length {
            Some(length) => Found::Known(Setting::stated(length, field.span())),
            None => field.refused(remarks, "a length of time, such as 0.025s"),
        };
    }
    let parse = |text: &str| {
        let nanoseconds = text.parse::<u64>().ok().map(Duration::from_nanos);
        units::protobuf(text).or(nanoseconds)
    };
    field.parse(remarks, "a length of time, such as 0.025s", parse)
}

/// Reads a length that Envoy refuses if it is zero.
fn positive(field: &Field<'_>, remarks: &mut Vec<Remark>) -> Found<Duration> {
    match duration(field, remarks) {
        Found::Known(length) if length.value.is_zero() => field.refused(remarks, "a length of time above zero"),
        // Less than a millisecond is one.
        found => found.map(|length| length.max(Duration::from_millis(1))),
    }
}

/// Returns the time limit of the route that has a policy; of a virtual host, the longest of its routes.
fn route_timeout(parent: &Node, remarks: &mut Vec<Remark>) -> Setting<Limit<Duration>> {
    let mut fields = Fields::of(parent, "");
    let routes: Vec<&Node> = fields.take("routes").map(|field| field.node.items().iter().collect()).unwrap_or_default();
    let inner = routes.iter().filter_map(|route| route.get("route"));
    let longest = inner
        .map(|route| route_timeout(route, remarks))
        .max_by_key(|timeout| (timeout.value == Limit::Unknown, timeout.value.at().unwrap_or(Duration::MAX)));
    if let Some(longest) = longest {
        return longest;
    }
    let timeout = fields.read("timeout", |field| duration(field, remarks));
    // Ambassador's and Emissary's dialect.
    let in_ms = fields.count("timeout_ms", remarks);
    let timeout = timeout.or_else(in_ms.map(|ms| Duration::from_millis(ms.into())));
    timeout
        .map(|length| if length.is_zero() { Limit::None } else { Limit::At(length) })
        .flat_or(Limit::At(ROUTE_TIMEOUT))
}

/// Returns the longest delay: ten times the first one unless it is stated.
pub(super) fn capped(base: Option<Setting<Duration>>, cap: Found<Duration>) -> Option<Setting<Limit<Duration>>> {
    match (base, cap) {
        (Some(base), Found::Absent) => Some(Setting::default(Limit::At(base.value.saturating_mul(CAP_FACTOR)))),
        (None, Found::Absent) => None,
        (_, stated) => stated.limit(),
    }
}

fn policy(field: &Field<'_>, around: Around<'_>) -> Entry {
    let mut fields = field.fields();
    let path = field.path.clone();
    let conditions = fields.take("retry_on");
    // A message with the same name, for what Envoy itself fetches, has no conditions.
    let is_fetch = conditions.is_none() && fields.take("retry_back_off").is_some();
    let mut fields = field.fields();
    let _ = fields.take("retry_on");
    let kind = if is_fetch { EntryKind::Fetch } else { EntryKind::Call };
    let mut entry = Entry::new(Format::Envoy, kind, path, field.span());
    if ["route", "redirect", "direct_response"].iter().any(|action| around.parent.get(action).is_some())
        && around.parent.get("match").is_some()
    {
        let text = "a route has no such field, Envoy refuses it; write it into `route`, or into the virtual host";
        entry.remarks.push(field.remark(RemarkKind::Invalid, text));
    }
    let (settings, remarks) = (&mut entry.settings, &mut entry.remarks);
    let words = conditions.as_ref().map(Field::words).unwrap_or_default();
    let retries = fields.read("num_retries", |field| unwrapped(field).count(remarks));
    settings.attempts = Some(retries.retries_or(RETRIES));
    let backoff = fields.take("retry_back_off").map(|field| field.fields());
    let (mut base, mut cap) = (Found::Absent, Found::Absent);
    if let Some(mut backoff) = backoff {
        let whole = Field { path: backoff.path.clone(), ..field.clone() };
        base = backoff.read("base_interval", |field| positive(field, remarks));
        cap = backoff.read("max_interval", |field| positive(field, remarks));
        if base == Found::Absent {
            remarks.push(whole.remark(RemarkKind::Invalid, "base_interval is required: Envoy refuses the policy"));
            base = Found::Unknown(whole.span());
        }
        if let (Some(base), Some(cap)) = (base.known(), cap.known())
            && cap.value < base.value
        {
            let span = cap.span().unwrap_or(whole.span());
            let text = "max_interval is below base_interval: Envoy refuses the policy".to_owned();
            remarks.push(Remark { kind: RemarkKind::Invalid, path: whole.path.clone(), span, text });
        }
        backoff.finish(remarks);
    }
    settings.base = base.or(if is_fetch { FETCH_BASE } else { BASE });
    settings.cap = capped(settings.base, cap);
    settings.multiplier = Some(Setting::default(2.0));
    settings.jitter = Some(Setting::default(Jitter::Full));
    if is_fetch {
        fields.finish(remarks);
        return entry;
    }
    settings.budget = budget(around.parent, around.budgets);
    settings.timeout = Some(route_timeout(around.parent, remarks));
    let per_try = fields.read("per_try_timeout", |field| duration(field, remarks));
    // 0 is that of the route.
    settings.attempt_timeout = per_try.limit().filter(|length| length.value != Limit::At(Duration::ZERO));
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
    let mut codes = Vec::new();
    for (name, condition) in
        [("retriable_status_codes", "retriable-status-codes"), ("retriable_headers", "retriable-headers")]
    {
        let Some(list) = fields.take(name) else { continue };
        if words.contains(&condition) {
            codes.extend(list.words().into_iter().filter(|_| name == "retriable_status_codes"));
            remarks.push(list.remark(RemarkKind::Unmapped, "decides which answers are retried"));
        } else if !conditions.as_ref().is_some_and(Field::has_unknown) {
            let text = format!("has no effect without `{condition}` in retry_on");
            remarks.push(list.remark(RemarkKind::NoEffect, text));
        }
    }
    entry.may_repeat_unsafe = match &conditions {
        _ if around.is_idempotent => Some(false),
        _ if repeats_unsafe(&words) || repeats_unsafe(&codes) => Some(true),
        Some(conditions) if conditions.has_unknown() => None,
        _ => Some(false),
    };
    let unmapped = [
        ("per_try_idle_timeout", "limits the silence within an attempt"),
        ("rate_limited_retry_back_off", "a server's hint replaces the delay"),
        ("retry_host_predicate", "which hosts are tried"),
        ("retry_priority", "which priorities are tried"),
        ("host_selection_retry_max_attempts", "how often another host is looked for"),
        ("retriable_request_headers", "which requests are retried, by their headers"),
        ("retry_options_predicates", "what extensions decide"),
    ];
    fields.unmapped(&unmapped, remarks);
    fields.finish(remarks);
    if let Some(Setting { value: RetryBudget::Concurrent(0), origin }) = settings.budget {
        settings.attempts = Some(Setting { value: Limit::At(1), origin });
        remarks.push(field.remark(RemarkKind::NoEffect, "the cluster's max_retries: 0 lets no retry pass"));
    }
    entry
}
