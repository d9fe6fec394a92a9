//! gRPC service configs.
//!
//! Read in grpc-go's `service_config.go` and `stream.go`, and in proposal A6. A channel refuses a whole config for one
//! field; this reader notes it and goes on, because many a config is for another reader than a channel: generators of
//! clients read files without `maxAttempts`.

use stagger_core::{Jitter, Ratio};

use crate::entry::{Entry, EntryKind, Limit, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::NOT_READ;
use crate::format::Format;
use crate::position::Span;
use crate::service_config::{
    Attempts, HedgingPolicy, MAX_ATTEMPTS, MethodConfig, Problem, RetryPolicy, parse_document,
};
use crate::tree::Node;

const JITTER: Jitter = Jitter::Factor(Ratio::percent(20));

pub(crate) fn is_service_config(document: &Node) -> bool {
    document.get("methodConfig").is_some()
}

pub(crate) fn read(document: &Node) -> Vec<Entry> {
    let config = parse_document(document);
    let mut budget = Setting::default(RetryBudget::Unlimited);
    if let Some(throttling) = config.throttling
        && let Some(tokens) = throttling.max_tokens
        && let Some(millis) = throttling.token_ratio_millis
    {
        let (tokens, ratio) = (f64::from(tokens.value), f64::from(millis.value) / 1e3);
        budget = Setting::stated(RetryBudget::Throttle { tokens, ratio }, throttling.span);
    }
    let mut entries: Vec<Entry> = config.methods.iter().map(|config| method(config, budget)).collect();
    for problem in config.problems {
        let is_of = |config: &MethodConfig| match problem.path.strip_prefix(&*config.path) {
            Some(rest) => rest.is_empty() || rest.starts_with('.'),
            None => false,
        };
        // What is wrong with the whole config is told with its first method.
        let at = config.methods.iter().position(is_of).unwrap_or_default();
        if let Some(entry) = entries.get_mut(at) {
            let Problem { path, span, text } = problem;
            entry.remarks.push(Remark { kind: RemarkKind::Invalid, path, span, text });
        }
    }
    entries
}

fn method(config: &MethodConfig, budget: Setting<RetryBudget>) -> Entry {
    let mut entry = Entry::new(Format::Grpc, EntryKind::Timeout, config.path.clone(), config.span);
    if let Some(timeout) = config.timeout
        && let Some(span) = timeout.span()
    {
        entry.span = span;
    }
    entry.settings.timeout = Some(Setting::or_unlimited(config.timeout));
    match &config.attempts {
        Attempts::Single => entry.settings.attempts = Some(Setting::default(Limit::At(1))),
        Attempts::Retry(policy) => {
            called(&mut entry, policy.span, budget);
            retries(policy, &mut entry);
        }
        Attempts::Hedge(policy) => {
            called(&mut entry, policy.span, budget);
            hedges(policy, &mut entry);
        }
    }
    entry.remarks.extend(config.others.iter().map(|other| Remark {
        kind: RemarkKind::Unmapped,
        path: other.path.clone(),
        span: other.span,
        text: NOT_READ.to_owned(),
    }));
    entry
}

fn called(entry: &mut Entry, span: Span, budget: Setting<RetryBudget>) {
    entry.span = span;
    entry.kind = EntryKind::Call;
    entry.settings.budget = Some(budget);
}

fn note(entry: &mut Entry, kind: RemarkKind, span: Span, policy: &str, text: impl Into<String>) {
    entry.remarks.push(Remark { kind, path: format!("{}.{policy}", entry.path), span, text: text.into() });
}

/// What a channel makes of a number of attempts.
fn attempts(stated: Setting<u32>, entry: &mut Entry, policy: &str) -> Setting<Limit<u32>> {
    if stated.value > MAX_ATTEMPTS {
        let text = format!("a channel makes {MAX_ATTEMPTS} attempts and not {}", stated.value);
        note(entry, RemarkKind::Invalid, stated.span().unwrap_or(entry.span), policy, text);
    }
    stated.map(|attempts| Limit::At(attempts.min(MAX_ATTEMPTS)))
}

fn hedges(policy: &HedgingPolicy, entry: &mut Entry) {
    entry.settings.attempts = policy.max_attempts.map(|stated| attempts(stated, entry, "hedgingPolicy"));
    let text = "hedges: attempts overlap, and the first good answer counts";
    note(entry, RemarkKind::Unmapped, policy.span, "hedgingPolicy", text);
}

fn retries(policy: &RetryPolicy, entry: &mut Entry) {
    entry.settings.attempts = Some(match policy.max_attempts {
        Some(stated) => attempts(stated, entry, "retryPolicy"),
        None => {
            let text =
                "without maxAttempts a channel refuses the policy, and generators of clients retry until the timeout";
            note(entry, RemarkKind::Note, policy.span, "retryPolicy", text);
            Setting::default(Limit::None)
        }
    });
    let settings = &mut entry.settings;
    settings.base = policy.initial_backoff;
    settings.cap = policy.max_backoff.map(|cap| cap.map(Limit::At));
    settings.multiplier = policy.backoff_multiplier;
    settings.jitter = Some(Setting::default(JITTER));
    settings.attempt_timeout = policy.attempt_timeout.map(|timeout| timeout.map(Limit::At));
    const AFTER_PROCESSING: [&str; 9] =
        ["DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN", "CANCELLED", "DATA_LOSS", "4", "13", "2", "1"];
    entry.may_repeat_unsafe =
        Some(policy.codes.iter().any(|code| AFTER_PROCESSING.contains(&code.text.to_ascii_uppercase().as_str())));
}
