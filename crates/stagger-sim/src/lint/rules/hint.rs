use stagger_core::HintMode;

use super::super::change::{length, word};
use super::super::rule::{Found, Rule, Severity};
use super::super::subject::{Subject, brief};

pub(in crate::lint) static HINT_REFUSED: Rule = Rule {
    code: "S014",
    name: "hint-above-limit",
    severity: Severity::Warning,
    title: "the server's usual hint ends the call",
    why: "a hint above `max-hint` is not followed: the call stops, instead of waiting as long as the server asks",
    more: "It speaks where the hint that the server usually sends (`--retry-after`, its Retry-After) is longer than \
           `max-hint`, or than `max-elapsed`. A hint is a floor, so the only choices are to wait for it or to give up.",
    judge: hint_refused,
};

fn hint_refused(subject: &Subject<'_>) -> Option<Found> {
    let (policy, hint) = (subject.policy, subject.context.retry_after?);
    if !subject.retries() {
        return None;
    }
    let refused = |limit: Option<core::time::Duration>| limit.filter(|limit| hint > *limit);
    let (max_hint, max_elapsed) = (refused(policy.max_hint()), refused(policy.max_elapsed()));
    let (which, limit) =
        max_hint.map(|limit| ("max-hint", limit)).or(max_elapsed.map(|limit| ("max-elapsed", limit)))?;
    let fact = format!("the server asks for {}, and {which} is {}", brief(hint), brief(limit));
    let twice = hint.saturating_mul(2);
    let change = match (max_hint, max_elapsed) {
        (Some(_), None) => [length("max-hint", twice)].into(),
        (None, _) => [length("max-elapsed", twice)].into(),
        (Some(_), Some(_)) => {
            super::super::change::Change::from([length("max-hint", twice), length("max-elapsed", twice)])
        }
    };
    Some(Found::fact(fact).mend(change))
}

pub(in crate::lint) static RENDEZVOUS: Rule = Rule {
    code: "S020",
    name: "hint-rendezvous",
    severity: Severity::Warning,
    title: "hints are followed to the instant",
    why: "everyone who was told the same time comes back at it, together",
    more: "It speaks for `hint=exact`. As a floor (`at-least`, the default) a hint is never undercut either, and \
           callers are spread above it. What the server reserved for one caller alone, a slot, is kept to the tick in \
           every mode. It is silent for a single client.",
    judge: rendezvous,
};

fn rendezvous(subject: &Subject<'_>) -> Option<Found> {
    let exact = subject.policy.hint_mode() == HintMode::Exact;
    if !exact || !subject.retries() || subject.alone() {
        return None;
    }
    let hint = subject.context.retry_after.map_or("5s".to_owned(), brief);
    Some(
        Found::fact(format!("all who are told {hint} come back exactly {hint} later")).mend([word("hint", "at-least")]),
    )
}
