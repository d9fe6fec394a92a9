//! The rules about how often a call may be made, and how long that may take.

use core::time::Duration;

use crate::analysis::{PolicyAnalysis, brief, thousands};
use crate::change::{duration, value};
use crate::context::{Idempotency, Purpose, usual_policy};
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static TOO_MANY_ATTEMPTS: Rule = Rule {
    code: "S010",
    name: "too-many-attempts",
    severity: Severity::Warning,
    title: "too many attempts for this purpose",
    rationale: "the user has left, or the function has been billed, long before the last attempt",
    details: "Applies to more than 5 attempts of an interactive call and more than 3 in a serverless function; \
              unlimited attempts exceed both. 2 or 3 are recommended for both. Each further attempt adds load to a \
              server that is in trouble, for an answer that is no longer needed.",
    check: too_many_attempts,
};

fn too_many_attempts(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (most, whose) = match analysis.context.purpose? {
        Purpose::Interactive => (5, "an interactive call"),
        Purpose::Serverless => (3, "a serverless function"),
        _ => return None,
    };
    if !analysis.retries() {
        return None;
    }
    let many = match analysis.attempts() {
        Some(attempts) if attempts <= most => return None,
        Some(attempts) => format!("{attempts} attempts"),
        None => "unlimited attempts".to_owned(),
    };
    Some(Diagnosis::new(format!("{many}; at most {most} for {whose}")).suggest([value("max-attempts", 3)]))
}

pub(crate) static NO_RETRY_LIMIT: Rule = Rule {
    code: "S011",
    name: "no-retry-limit",
    severity: Severity::Warning,
    title: "neither attempts nor elapsed time are limited",
    rationale: "a call that fails permanently is retried forever, and such calls accumulate",
    details: "Applies if neither `max-attempts` nor `max-elapsed` is set. A long-lived connection (`--for \
              reconnecting`) may be retried forever. If a deadline, a lease or an invocation limit is known, S012 \
              compares the policy with it instead.",
    check: no_retry_limit,
};

fn no_retry_limit(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let known = analysis.context;
    let is_limited_outside = analysis.time_limit().is_some();
    let may_go_on = known.purpose == Some(Purpose::Reconnecting);
    let ends = analysis.attempts().is_some() || analysis.policy.max_elapsed().is_some();
    if !analysis.retries() || ends || may_go_on || is_limited_outside {
        return None;
    }
    let attempts = usual_policy(known.purpose).max_attempts()?;
    let wait = analysis.policy.mean(analysis.known_retries())?.as_secs_f64();
    let fact = if wait > 0.0 {
        let per_day = thousands((86_400.0 / wait) as u64);
        format!("a call that never succeeds makes about {per_day} attempts per day, forever")
    } else {
        "a call that never succeeds is repeated without a pause, forever".to_owned()
    };
    let advice = "or set max-elapsed; for a long-lived connection, which needs no limit, pass --for reconnecting";
    Some(Diagnosis::new(fact).suggest([value("max-attempts", attempts)]).advise(advice))
}

pub(crate) static TOO_LONG: Rule = Rule {
    code: "S012",
    name: "longer-than-allowed",
    severity: Severity::Warning,
    title: "the call may take longer than allowed",
    rationale: "after the deadline the answer is useless, after the lease another worker does the same work, and at \
                the end of the invocation the function is killed while it waits",
    details: "Applies if the worst case (the spread, the longest delays, and as many attempt timeouts, if known) \
              exceeds the deadline, the lease or the invocation limit. The server's usual Retry-After \
              (`--retry-after`) counts if the policy waits for it. `max-elapsed` bounds the worst case: the call ends \
              at once with its last error if the next retry would start too late. It does not interrupt an attempt in \
              progress, so the suggestion leaves room for one: the attempt timeout or, if it is unknown, a tenth of \
              the lease or the invocation limit.",
    check: too_long,
};

/// The part of a lease or an invocation that is kept for the last attempt if its timeout is unknown.
const ROOM: u32 = 10;

fn too_long(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let known = analysis.context;
    let (what, limit) = analysis.time_limit()?;
    let (room, room_beside_worst_case) = match known.attempt_timeout {
        // The worst case includes the last attempt.
        Some(timeout) => (timeout, Duration::ZERO),
        // A deadline only ends the wait of a caller; an attempt that outlasts a lease or an invocation does harm.
        None if what == "deadline" => (Duration::ZERO, Duration::ZERO),
        None => (limit / ROOM, limit / ROOM),
    };
    let goes_on = match analysis.worst_case() {
        Some(worst_case) if worst_case.saturating_add(room_beside_worst_case) <= limit => return None,
        Some(worst_case) => format!("the worst case is {}", brief(worst_case)),
        None => "there is no limit".to_owned(),
    };
    let mut found = Diagnosis::new(format!("{goes_on}; the {what} is {}", brief(limit)));
    let retries = analysis.known_retries();
    if analysis.attempts() == Some(retries + 1) {
        if let Some(usual) = analysis.policy.elapsed_mean(retries) {
            found = found.and(format!("a call that always fails waits {} on average", brief(usual)));
        }
    }
    if let Some(hint) = analysis.followed_hint() {
        found = found.and(format!("the server asks for {}, which the call waits", brief(hint)));
    }
    let rest = limit.saturating_sub(room);
    if rest.is_zero() {
        let timeout = brief(known.attempt_timeout.unwrap_or_default());
        return Some(found.advise(format!("shorten the attempt timeout: {timeout} leaves no room for a retry")));
    }
    let is_guessed = known.attempt_timeout.is_none() && !room.is_zero();
    if is_guessed {
        let room = brief(room);
        found =
            found.advise(format!("{room} are kept for the last attempt; pass --attempt-timeout if it may take longer"));
    }
    Some(
        found
            .suggest([duration("max-elapsed", rest)])
            .suggest([duration("max-elapsed", rest), value("spread", "0s")])
            .suggest_last_resort([value("max-attempts", 1), value("spread", "0s"), value("max-elapsed", "none")]),
    )
}

pub(crate) static ATTEMPTS_TOO_LONG: Rule = Rule {
    code: "S013",
    name: "attempts-outlast-deadline",
    severity: Severity::Warning,
    title: "the attempts alone exceed the deadline",
    rationale: "if the server answers slowly, which is when retries are needed, the last attempts are cut off or \
                never made",
    details: "Applies if the attempt timeout times the number of attempts exceeds the deadline, without any delay \
              between attempts. Without a limit of attempts it applies if a single attempt timeout exceeds the \
              deadline.",
    check: attempts_too_long,
};

fn attempts_too_long(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (timeout, deadline) = (analysis.context.attempt_timeout?, analysis.context.deadline?);
    let attempts = analysis.attempts().unwrap_or(1);
    let needed = timeout.saturating_mul(attempts);
    if needed <= deadline {
        return None;
    }
    let fit = deadline.as_nanos().checked_div(timeout.as_nanos()).unwrap_or(0) as u32;
    let shorter = format!("or shorten the attempt timeout to {}", brief(deadline / attempts));
    let [timeout, needed, deadline] = [timeout, needed, deadline].map(brief);
    let fact = match attempts {
        1 => format!("an attempt may take {timeout}; the deadline is {deadline}"),
        _ => format!(
            "{attempts} attempts of {timeout} take {needed}; the deadline is {deadline}, which leaves time for {fit}"
        ),
    };
    let found = Diagnosis::new(fact);
    Some(match fit {
        0 => found.advise("shorten the attempt timeout: a single attempt exceeds the deadline"),
        fit => found.suggest([value("max-attempts", fit)]).advise(shorter),
    })
}

pub(crate) static LAYERS: Rule = Rule {
    code: "S017",
    name: "layers-multiply",
    severity: Severity::Warning,
    title: "several layers retry, and their attempts multiply",
    rationale: "one request of a caller reaches the innermost layer as often as the product of all attempt limits",
    details: "Applies to two or more layers (`--layers`), each assumed to use the attempts of this policy. Within \
              one process, calls of this library detect that an outer layer retries and do not retry; across \
              processes and in other libraries, choose the layer that retries yourself.",
    check: layers,
};

fn layers(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let layers = analysis.context.layers?.get();
    if layers < 2 || !analysis.retries() {
        return None;
    }
    let (each, many) = match analysis.attempts() {
        None => ("unlimited".to_owned(), "any number of calls".to_owned()),
        Some(attempts) => match u64::from(attempts).checked_pow(layers) {
            Some(calls) => (attempts.to_string(), format!("{} calls", thousands(calls))),
            None => (attempts.to_string(), "more calls than can be counted".to_owned()),
        },
    };
    let fact = format!("{layers} layers with {each} attempts turn one call into {many}");
    let advice = "retry in one layer only, the outermost that can; set max-attempts=1 in the others";
    Some(Diagnosis::new(fact).advise(advice))
}

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
