//! gRPC service configs.
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

use crate::entry::{Entry, EntryKind, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::{self, NOT_READ};
use crate::format::Format;
use crate::position::Span;
use crate::tree::{Member, Node};

const JITTER: Jitter = Jitter::Factor(Ratio::percent(20));

/// `CANCELLED`, `UNKNOWN`, `DEADLINE_EXCEEDED`, `INTERNAL`, `DATA_LOSS`: the server may have processed the request.
const AFTER_PROCESSING: Codes = Codes::new(&[1, 2, 4, 13, 15]);

pub(crate) fn is_service_config(document: &Node) -> bool {
    document.get("methodConfig").is_some()
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let config = ConfigFields::read(&document.to_json());
    let places = Places { document, members: document.index() };
    let budget = budget(&config, &places).unwrap_or(Setting::default(RetryBudget::Unlimited));
    let mut entries: Vec<Entry> = config.methods.iter().map(|config| method(config, budget, &places)).collect();
    for problem in config.problems {
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

    fn setting<T: Copy>(&self, field: &Option<Field<T>>) -> Option<Setting<T>> {
        let field = field.as_ref()?;
        Some(Setting::stated(field.value, self.span(&field.path)))
    }
}

fn budget(config: &ConfigFields, places: &Places<'_>) -> Option<Setting<RetryBudget>> {
    let throttling = config.throttling.as_ref()?;
    let (tokens, ratio) = (throttling.max_tokens.as_ref()?.value, throttling.token_ratio.as_ref()?.value);
    let budget = RetryBudget::Throttle { tokens: f64::from(tokens), ratio: ratio.as_f64() };
    Some(Setting::stated(budget, places.span(&throttling.path)))
}

fn method(config: &MethodFields, budget: Setting<RetryBudget>, places: &Places<'_>) -> Entry {
    let place = places.span(&config.path);
    let mut entry = Entry::new(Format::Grpc, EntryKind::Timeout, config.path.to_string(), place);
    let timeout = places.setting(&config.timeout);
    if let Some(span) = timeout.and_then(|timeout| timeout.span()) {
        entry.span = span;
    }
    entry.settings.timeout = Some(Setting::or_unlimited(timeout));
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
    entry.settings.budget = Some(budget);
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
fn attempts(stated: Setting<u32>, entry: &mut Entry, policy: &Path) -> Setting<Limit<u32>> {
    if stated.value > MAX_ATTEMPTS {
        let text = format!("a channel makes {MAX_ATTEMPTS} attempts and not {}", stated.value);
        note(entry, RemarkKind::Invalid, stated.span().unwrap_or(entry.span), policy, text);
    }
    stated.map(|attempts| Limit::At(attempts.min(MAX_ATTEMPTS)))
}

fn hedges(policy: &HedgingFields, entry: &mut Entry, places: &Places<'_>) {
    let stated = places.setting(&policy.max_attempts);
    entry.settings.attempts = stated.map(|stated| attempts(stated, entry, &policy.path));
    let text = "hedges: attempts overlap, and the first good answer counts";
    note(entry, RemarkKind::Unmapped, entry.span, &policy.path, text);
}

fn retries(policy: &RetryFields, entry: &mut Entry, places: &Places<'_>) {
    entry.settings.attempts = Some(match places.setting(&policy.max_attempts) {
        Some(stated) => attempts(stated, entry, &policy.path),
        None => {
            let text =
                "without maxAttempts a channel refuses the policy, and generators of clients retry until the timeout";
            note(entry, RemarkKind::Note, entry.span, &policy.path, text);
            Setting::default(Limit::None)
        }
    });
    let settings = &mut entry.settings;
    settings.base = places.setting(&policy.initial_backoff);
    settings.cap = places.setting(&policy.max_backoff).map(|cap| cap.map(Limit::At));
    settings.multiplier = places.setting(&policy.backoff_multiplier);
    settings.jitter = Some(Setting::default(JITTER));
    settings.attempt_timeout = places.setting(&policy.attempt_timeout).map(|timeout| timeout.map(Limit::At));
    entry.may_repeat_unsafe = Some(policy.codes.iter().any(|code| AFTER_PROCESSING.contains(code)));
}
