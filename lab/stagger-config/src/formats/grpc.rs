//! gRPC service configs.
//!
//! | field | default | ignored | refused |
//! |---|---|---|---|
//! | `maxAttempts` | none: generators retry until the timeout | above 5, which is 5 | below 2, absent |
//! | `initialBackoff`, `maxBackoff` | none | | 0, absent |
//! | `backoffMultiplier` | none | | 0, absent |
//! | `retryableStatusCodes` | none | | empty |
//! | `timeout` | no limit | | no length |
//! | `name` | none | a `methodConfig` without one | a method without its service, the same name again |
//! | `retryThrottling` | no limit of retries | | `maxTokens` of 0 and above 1,000, `tokenRatio` of 0 |
//!
//! Read in grpc-go's `service_config.go` and `stream.go`, and in proposal A6. A channel refuses a whole config for one
//! field; stagger-http, which reads the fields, notes it and goes on, because many a config is for another reader than
//! a channel: generators of clients read files without `maxAttempts`. Here are the places of the fields, and what a
//! channel makes of them.

use std::collections::HashMap;

use stagger_core::{Jitter, Ratio};
use stagger_http::grpc::Codes;
use stagger_http::service_config::MAX_ATTEMPTS;
use stagger_http::service_config::fields::{ConfigFields, Field, HedgingFields, MethodFields, Path, RetryFields, Step};

use crate::entry::{Entry, EntryKind, Found, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{self, NOT_READ};
use crate::format::Format;
use crate::position::Span;
use crate::tree::{Member, Node, Value};

const JITTER: Jitter = Jitter::Factor(Ratio::percent(20));

/// `CANCELLED`, `UNKNOWN`, `DEADLINE_EXCEEDED`, `INTERNAL`, `DATA_LOSS`: the server may have processed the request.
const AFTER_PROCESSING: Codes = Codes::new(&[1, 2, 4, 13, 15]);

pub(crate) fn is_service_config(document: &Node) -> bool {
    // The name of the list, and what stands in it or beside it.
    const OF_METHODS: [&str; 5] = ["name", "retryPolicy", "hedgingPolicy", "timeout", "waitForReady"];
    const BESIDE: [&str; 4] = ["retryThrottling", "loadBalancingConfig", "loadBalancingPolicy", "healthCheckConfig"];
    let Some(methods) = document.get("methodConfig") else { return false };
    let is_method = |node: &Node| OF_METHODS.iter().any(|name| node.get(name).is_some());
    methods.items().iter().any(is_method) || BESIDE.iter().any(|name| document.get(name).is_some())
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let config = ConfigFields::read(&document.to_json());
    let places = Places { document, members: document.index() };
    let budget = budget(&config, &places);
    let mut entries: Vec<Entry> = config.methods.iter().map(|config| method(config, budget, &places)).collect();
    for problem in config.problems {
        // What is filled in elsewhere is not missing.
        let is_filled = |member: &Member| matches!(member.node.value, Value::Unknown);
        let (_, node) = places.find(&problem.path);
        if matches!(node.value, Value::Unknown) || node.members().iter().any(is_filled) {
            continue;
        }
        let is_of = |config: &MethodFields| problem.path.steps().starts_with(config.path.steps());
        // What is wrong with the whole config is told with its first method.
        let at = config.methods.iter().position(is_of).unwrap_or_default();
        if let Some(entry) = entries.get_mut(at) {
            let (path, span) = (problem.path.to_string(), places.span(&problem.path));
            entry.remarks.push(Remark { kind: RemarkKind::Invalid, path, span, text: problem.text });
        }
    }
    entries
}

/// Where the fields of a document are.
struct Places<'a> {
    document: &'a Node,
    members: HashMap<&'a str, &'a Member>,
}

impl<'a> Places<'a> {
    /// Returns the value at a path, or the closest around it, and its place with its name.
    fn find(&self, path: &Path) -> (Span, &'a Node) {
        let mut found = (self.document.span, self.document);
        for (depth, step) in path.steps().iter().enumerate() {
            let node = found.1;
            let next = match step {
                // The document has an index: it is asked for each field of each method.
                Step::Member(name) => {
                    let member = if depth == 0 { self.members.get(&**name).copied() } else { node.member(name) };
                    member.map(|member| (fields::span(member.key_span, member.node.span), &member.node))
                }
                Step::Item(at) => node.items().get(*at).map(|item| (item.span, item)),
            };
            let Some(next) = next else { break };
            found = next;
        }
        found
    }

    fn span(&self, path: &Path) -> Span {
        self.find(path).0
    }

    /// Returns a field. One of this name that could not be read is there, and is not known.
    fn setting<T: Copy>(&self, field: &Option<Field<T>>, parent: &Path, name: &str) -> Found<T> {
        if let Some(field) = field {
            return Found::Known(Setting::stated(field.value, self.span(&field.path)));
        }
        match self.find(parent).1.member(name) {
            Some(member) if !member.node.is_null() => Found::Unknown(fields::span(member.key_span, member.node.span)),
            _ => Found::Absent,
        }
    }

    /// Says which members of a mapping are filled in elsewhere.
    fn filled(&self, parent: &Path, remarks: &mut Vec<Remark>) {
        for member in self.find(parent).1.members() {
            let path = format!("{parent}.{}", member.key);
            let field = fields::Field { path, key_span: member.key_span, node: &member.node };
            let _ = field.says(remarks);
        }
    }
}

fn budget(config: &ConfigFields, places: &Places<'_>) -> Option<Setting<RetryBudget>> {
    let Some(throttling) = config.throttling.as_ref() else {
        // One that could not be read is there, and is not known.
        let is_stated = places.members.get("retryThrottling").is_some_and(|member| !member.node.is_null());
        return if is_stated { None } else { Some(Setting::default(RetryBudget::Unlimited)) };
    };
    let (tokens, ratio) = (throttling.max_tokens.as_ref()?.value, throttling.token_ratio.as_ref()?.value);
    let budget = RetryBudget::Throttle { tokens: f64::from(tokens), ratio: ratio.as_f64() };
    Some(Setting::stated(budget, places.span(&throttling.path)))
}

fn method(config: &MethodFields, budget: Option<Setting<RetryBudget>>, places: &Places<'_>) -> Entry {
    let place = places.span(&config.path);
    let mut entry = Entry::new(Format::Grpc, EntryKind::Timeout, config.path.to_string(), place);
    let timeout = places.setting(&config.timeout, &config.path, "timeout");
    if let Some(span) = timeout.span() {
        entry.span = span;
    }
    entry.settings.timeout = Some(timeout.limit_or(Limit::None));
    places.filled(&config.path, &mut entry.remarks);
    let name = places.find(&config.path).1.get("name");
    if name.is_none_or(|name| name.is_null() || matches!(&name.value, Value::List(names) if names.is_empty())) {
        let text = "a channel ignores a methodConfig without a name";
        note(&mut entry, RemarkKind::NoEffect, place, &config.path, text);
    }
    let (path, others) = match (&config.retries, &config.hedging) {
        (Some(policy), _) => (&policy.path, &policy.others),
        (None, Some(policy)) => (&policy.path, &policy.others),
        (None, None) => {
            entry.settings.attempts = Some(Setting::default(Limit::At(1)));
            return entry;
        }
    };
    let (span, policy) = places.find(path);
    entry.span = span;
    entry.kind = EntryKind::Call;
    entry.settings.budget = budget;
    places.filled(path, &mut entry.remarks);
    if let Some(policy) = &config.retries {
        retries(policy, &mut entry, places);
    }
    if let Some(policy) = &config.hedging {
        hedges(policy, &mut entry, places);
    }
    if !others.is_empty() {
        let members = policy.index();
        for name in others {
            let span = members.get(&**name).map_or(span, |member| fields::span(member.key_span, member.node.span));
            let path = format!("{path}.{name}");
            entry.remarks.push(Remark { kind: RemarkKind::Unmapped, path, span, text: NOT_READ.to_owned() });
        }
    }
    entry
}

fn note(entry: &mut Entry, kind: RemarkKind, span: Span, policy: &Path, text: impl Into<String>) {
    entry.remarks.push(Remark { kind, path: policy.to_string(), span, text: text.into() });
}

/// What a channel makes of a number of attempts.
fn attempts(found: Found<u32>, entry: &mut Entry, policy: &Path) -> Found<Limit<u32>> {
    if let Found::Known(stated) = found
        && stated.value > MAX_ATTEMPTS
    {
        let text = format!("a channel makes {MAX_ATTEMPTS} attempts and not {}", stated.value);
        note(entry, RemarkKind::Invalid, stated.span().unwrap_or(entry.span), policy, text);
    }
    found.map(|attempts| Limit::At(attempts.min(MAX_ATTEMPTS)))
}

fn hedges(policy: &HedgingFields, entry: &mut Entry, places: &Places<'_>) {
    let stated = places.setting(&policy.max_attempts, &policy.path, "maxAttempts");
    entry.settings.attempts = attempts(stated, entry, &policy.path).flat();
    let text = "hedges: attempts overlap, and the first good answer counts";
    note(entry, RemarkKind::Unmapped, entry.span, &policy.path, text);
}

fn retries(policy: &RetryFields, entry: &mut Entry, places: &Places<'_>) {
    entry.settings.attempts = Some(match places.setting(&policy.max_attempts, &policy.path, "maxAttempts") {
        Found::Absent => {
            let text =
                "without maxAttempts a channel refuses the policy, and generators of clients retry until the timeout";
            note(entry, RemarkKind::Note, entry.span, &policy.path, text);
            Setting::default(Limit::None)
        }
        stated => attempts(stated, entry, &policy.path).flat_or(Limit::Unknown),
    });
    let settings = &mut entry.settings;
    let path = &policy.path;
    settings.base = places.setting(&policy.initial_backoff, path, "initialBackoff").known();
    settings.cap = places.setting(&policy.max_backoff, path, "maxBackoff").limit();
    settings.multiplier = places.setting(&policy.backoff_multiplier, path, "backoffMultiplier").known();
    settings.jitter = Some(Setting::default(JITTER));
    settings.attempt_timeout = places.setting(&policy.attempt_timeout, path, "perAttemptRecvTimeout").limit();
    entry.may_repeat_unsafe = Some(policy.codes.iter().any(|code| AFTER_PROCESSING.contains(code)));
}
