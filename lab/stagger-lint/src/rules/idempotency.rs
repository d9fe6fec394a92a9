use crate::analysis::PolicyAnalysis;
use crate::change::value;
use crate::context::Idempotency;
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static NOT_IDEMPOTENT: Rule = Rule {
    code: "S019",
    name: "not-idempotent",
    severity: Severity::Warning,
    title: "the operation is not idempotent",
    rationale: "after a timeout it is unknown whether the request was executed, and a retry may execute it again",
    details: "Applies if the operation is declared not idempotent and the policy retries. An idempotency key that is \
              the same for all attempts lets the server recognize repetitions and makes retries safe (`--idempotent \
              key`). A request that was certainly not processed may always be sent again; the drivers do so once, \
              without a policy.",
    check: not_idempotent,
};

fn not_idempotent(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    if analysis.context.idempotency != Some(Idempotency::No) || !analysis.retries() {
        return None;
    }
    Some(
        Diagnosis::new(format!("the operation may be executed {}", analysis.times()))
            .suggest([value("max-attempts", 1)])
            // A time limit would have no effect any more.
            .suggest([value("max-attempts", 1), value("max-elapsed", "none")])
            .advise("or send an idempotency key that is the same for all attempts; then pass --idempotent key"),
    )
}
