//! The rules about delays that a server asks for.

use core::time::Duration;

use stagger_core::HintMode;

use crate::analysis::{PolicyAnalysis, brief};
use crate::change::{Change, duration, value};
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static HINT_ABOVE_LIMIT: Rule = Rule {
    code: "S014",
    name: "hint-above-limit",
    severity: Severity::Warning,
    title: "the server's usual Retry-After ends the call",
    rationale: "a hint above `max-hint` is not followed: the call stops instead of waiting as long as the server \
                asks",
    details: "Applies if the hint that the server usually sends (`--retry-after`) is longer than \
              `max-hint` or `max-elapsed`. A hint is a minimum, so the only choices are to wait for it or to give \
              up. Does not apply to a hint beyond the deadline, the lease or the invocation limit, where giving up is \
              right.",
    check: hint_above_limit,
};

fn hint_above_limit(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (policy, hint) = (analysis.policy, analysis.context.retry_after?);
    if !analysis.retries() {
        return None;
    }
    if let Some((_, limit)) = analysis.time_limit() {
        if hint >= limit {
            return None;
        }
    }
    let mut exceeded = Vec::new();
    for (key, limit) in [("max-hint", policy.max_hint()), ("max-elapsed", policy.max_elapsed())] {
        match limit {
            Some(limit) if hint > limit => exceeded.push((key, limit)),
            _ => {}
        }
    }
    let (which, limit) = *exceeded.first()?;
    let fact = format!("the server asks for {}; {which} is {}", brief(hint), brief(limit));
    let longer = exceeded.into_iter().map(|(key, _)| duration(key, hint.saturating_mul(2))).collect();
    Some(Diagnosis::new(fact).suggest(Change::Settings(longer)))
}

pub(crate) static RENDEZVOUS: Rule = Rule {
    code: "S020",
    name: "hint-rendezvous",
    severity: Severity::Warning,
    title: "hints are followed exactly",
    rationale: "all clients that receive the same hint come back at the same instant",
    details: "Applies to `hint=exact`. With `at-least` (the default), a hint is a minimum, and callers are spread \
              above it. A time that the server reserved for one client is honored to the tick in every mode. Does \
              not apply to a single client.",
    check: rendezvous,
};

fn rendezvous(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let exact = analysis.policy.hint_mode() == HintMode::Exact;
    if !exact || !analysis.retries() || analysis.has_single_client() {
        return None;
    }
    let hint = brief(analysis.context.retry_after.unwrap_or(Duration::from_secs(5)));
    let fact = format!("all clients that receive {hint} come back exactly {hint} later");
    Some(Diagnosis::new(fact).suggest([value("hint", "at-least")]))
}
