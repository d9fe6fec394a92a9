use super::super::analysis::PolicyAnalysis;
use super::super::change::value;
use super::super::context::Idempotency;
use super::super::rule::{Diagnosis, Rule, Severity};

pub(in crate::lint) static NOT_IDEMPOTENT: Rule = Rule {
    code: "S019",
    name: "not-idempotent",
    severity: Severity::Warning,
    title: "the operation must not be carried out twice",
    why: "after a time-out nobody knows whether the request was carried out, and a retry may do it again",
    more: "It speaks where the operation is said not to be idempotent and there are retries. A key that stays the same \
           for all attempts, by which the server knows them for one, makes it so that it may be retried (`--idempotent \
           key`). What certainly was not processed may be sent again in any case; the drivers do that once, without a \
           policy.",
    check: not_idempotent,
};

fn not_idempotent(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    if analysis.context.idempotency != Some(Idempotency::No) || !analysis.retries() {
        return None;
    }
    let times =
        analysis.attempts().map_or("any number of times".to_owned(), |attempts| format!("up to {attempts} times"));
    Some(
        Diagnosis::new(format!("it may be carried out {times}"))
            .suggest([value("max-attempts", 1)])
            // A limit of time would have nothing left to do.
            .suggest([value("max-attempts", 1), value("max-elapsed", "none")])
            .advise("or send an idempotency key that stays the same for all attempts; then say --idempotent key"),
    )
}
