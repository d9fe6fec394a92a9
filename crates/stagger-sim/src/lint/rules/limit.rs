use core::time::Duration;

use stagger_core::{Policy, profile};

use super::super::analysis::{PolicyAnalysis, brief, thousands};
use super::super::change::{duration, value};
use super::super::context::Purpose;
use super::super::rule::{Diagnosis, Rule, Severity};

pub(in crate::lint) static TOO_MANY_ATTEMPTS: Rule = Rule {
    code: "S010",
    name: "too-many-attempts",
    severity: Severity::Warning,
    title: "too many attempts for its purpose",
    why: "a person has gone, or a function is billed, long before the last of them",
    more: "It speaks for more than 5 attempts while a person waits, and more than 3 in a function that is billed by \
           its time; no limit is more than both. 2 or 3 are recommended for both. Each attempt beyond them adds load \
           to a server that is in trouble, for an answer that nobody waits for any more.",
    check: too_many_attempts,
};

fn too_many_attempts(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (most, whose) = match analysis.purpose()? {
        Purpose::Interactive => (5, "a person waits"),
        Purpose::Serverless => (3, "a function is billed by its time"),
        _ => return None,
    };
    let attempts = analysis.attempts();
    if !analysis.retries() || attempts.is_some_and(|attempts| attempts <= most) {
        return None;
    }
    let many = attempts.map_or("attempts are unlimited".to_owned(), |attempts| format!("{attempts} attempts"));
    Some(Diagnosis::new(format!("{many}, while {whose}: {most} at most")).suggest([value("max-attempts", 3)]))
}

pub(in crate::lint) static NO_RETRY_LIMIT: Rule = Rule {
    code: "S011",
    name: "no-retry-limit",
    severity: Severity::Warning,
    title: "no limit of attempts, and none of time",
    why: "a call that fails for good is retried for ever, and such calls only become more",
    more: "It speaks where neither `max-attempts` nor `max-elapsed` is set. A connection that is kept up (`--for \
           reconnecting`) may go on for ever. Where a deadline, a lease or an invocation is known, S012 says what is \
           too long for it.",
    check: no_retry_limit,
};

/// How many attempts are recommended: those of our own profiles.
fn recommended(purpose: Option<Purpose>) -> Option<u32> {
    let policy: Policy = match purpose {
        Some(Purpose::Interactive) => profile::INTERACTIVE.policy(),
        Some(Purpose::Serverless) => profile::SERVERLESS.policy(),
        Some(Purpose::Background) => profile::BACKGROUND_JOB.policy(),
        Some(Purpose::Reconnecting) => profile::WEB_SOCKET.policy(),
        Some(Purpose::Near | Purpose::Far) | None => Policy::DEFAULT,
    };
    policy.max_attempts().map(core::num::NonZeroU32::get)
}

fn no_retry_limit(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let known = analysis.context;
    let limited_outside = known.deadline.or(known.lease).or(known.invocation).is_some();
    let may_go_on = analysis.purpose() == Some(Purpose::Reconnecting);
    let ends = analysis.attempts().is_some() || analysis.policy.max_elapsed().is_some();
    if !analysis.retries() || ends || may_go_on || limited_outside {
        return None;
    }
    let attempts = recommended(analysis.purpose())?;
    let day = Duration::from_secs(86_400);
    let wait = analysis.policy.mean(u32::try_from(analysis.delays.len()).unwrap_or(u32::MAX))?.as_secs_f64();
    let fact = if wait > 0.0 {
        let per_day = thousands((day.as_secs_f64() / wait) as u64);
        format!("a call that never succeeds makes about {per_day} attempts a day, for ever")
    } else {
        "a call that never succeeds is repeated without a pause, for ever".to_owned()
    };
    Some(
        Diagnosis::new(fact)
            .suggest([value("max-attempts", attempts)])
            .advise("or max-elapsed; for a connection that is kept up, no limit may be meant: --for reconnecting"),
    )
}

pub(in crate::lint) static TOO_LONG: Rule = Rule {
    code: "S012",
    name: "longer-than-allowed",
    severity: Severity::Warning,
    title: "it may go on for longer than it is allowed to",
    why: "after the deadline nobody waits for the answer, after the lease somebody else does the same work, and at the \
           end of the invocation the function is killed in its sleep",
    more: "It speaks where the worst_case case (the spread, the longest delays, and as many attempts of the length of their \
           time-out, if that is known) goes beyond the deadline, the lease or the invocation. `max-elapsed` bounds it: \
           a retry that would start too late is not waited for, and the call ends at once with its own last error. An \
           attempt that is underway is not interrupted by it, so room is left for one.",
    check: too_long,
};

fn too_long(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let known = analysis.context;
    let limits = [("deadline", known.deadline), ("lease", known.lease), ("invocation", known.invocation)];
    let (what, limit) =
        limits.into_iter().filter_map(|(what, limit)| Some((what, limit?))).min_by_key(|(_, limit)| *limit)?;
    let worst_case = analysis.worst_case();
    if worst_case.is_some_and(|worst_case| worst_case <= limit) {
        return None;
    }
    let goes_on = worst_case
        .map_or("there is no limit".to_owned(), |worst_case| format!("the worst case is {}", brief(worst_case)));
    let found = Diagnosis::new(format!("{goes_on}; the {what} is {}", brief(limit)));
    // Where all of its retries are known.
    let retries = u32::try_from(analysis.delays.len()).unwrap_or(u32::MAX);
    let all = analysis.attempts().filter(|attempts| attempts - 1 == retries);
    let usual = all.and_then(|_| analysis.policy.elapsed_mean(retries));
    let found =
        found.and_if_some(usual.map(|usual| format!("a call that keeps failing waits {} on average", brief(usual))));
    // Room for the attempt that begins last.
    let rest = limit.saturating_sub(known.attempt_timeout.unwrap_or_default());
    if rest.is_zero() {
        let timeout = brief(known.attempt_timeout.unwrap_or_default());
        return Some(found.advise(format!("shorten the time-out of an attempt: {timeout} leave no room for a retry")));
    }
    Some(
        found
            .suggest([duration("max-elapsed", rest)])
            .suggest([duration("max-elapsed", rest), duration("spread", Duration::ZERO)])
            .suggest_last_resort([
                value("max-attempts", 1),
                duration("spread", Duration::ZERO),
                value("max-elapsed", "none"),
            ]),
    )
}

pub(in crate::lint) static ATTEMPTS_TOO_LONG: Rule = Rule {
    code: "S013",
    name: "attempts-outlast-deadline",
    severity: Severity::Warning,
    title: "the attempts alone outlast the deadline",
    why: "the last attempts are never made, or are cut off, when the server answers slowly, which is when they are \
           needed",
    more: "It speaks where the time-out of an attempt times the number of attempts is more than the deadline, without \
           any delay between them. Without a limit of attempts it speaks where the time-out has_single_client is longer than the \
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
    let fit = deadline.as_nanos().checked_div(timeout.as_nanos()).map_or(0, |fit| fit as u32);
    let fact = match attempts {
        1 => format!("an attempt may take {}; the deadline is {}", brief(timeout), brief(deadline)),
        _ => format!(
            "{attempts} attempts of {} are {}; the deadline is {}, which is time for {fit}",
            brief(timeout),
            brief(needed),
            brief(deadline)
        ),
    };
    let shorter = format!("or shorten the time-out of an attempt to {}", brief(deadline / attempts));
    let found = Diagnosis::new(fact);
    Some(match fit {
        0 => found.advise("shorten the time-out of an attempt: a single one outlasts the deadline"),
        fit => found.suggest([value("max-attempts", fit)]).advise(shorter),
    })
}
