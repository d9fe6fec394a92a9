use core::time::Duration;

use stagger_core::schedule::Backoff;

use super::super::change::{delays, length, word};
use super::super::rule::{Found, Rule, Severity};
use super::super::subject::{Subject, brief};

/// The longest cap that is recommended for most things: the upper end of the guide's 10 to 60 s.
const LONGEST: Duration = Duration::from_secs(60);
/// The cap that a policy gets which has none: that of the plain default.
const USUAL: Duration = match stagger_core::Policy::DEFAULT.cap() {
    Some(cap) => cap,
    None => LONGEST,
};
/// How many bases a cap is at least.
const BASES: u32 = 10;

pub(in crate::lint) static NO_CAP: Rule = Rule {
    code: "S005",
    name: "no-cap",
    severity: Severity::Warning,
    title: "no cap",
    why: "delays that double without a limit soon outlast every outage: the service is back, and its clients are not",
    more: "It speaks for exponential and linear backoff that grows and has no cap, however few its attempts are: \
           somebody will raise their number. 10 to 60 s suit most things, 1 to 5 s where a person waits.",
    judge: no_cap,
};

fn no_cap(subject: &Subject<'_>) -> Option<Found> {
    let policy = subject.policy;
    if !subject.retries() || !subject.grows() || policy.cap().is_some() {
        return None;
    }
    let upto = |n: u32| Some(format!("retry {n} waits up to {}", brief(policy.bounds(n)?.1)));
    let later: Vec<String> = [10, 20].into_iter().filter_map(upto).collect();
    let last = subject.attempts().map(|attempts| attempts - 1).filter(|last| *last < 10);
    let fact = match last.and_then(upto) {
        Some(last) => format!("{last}, and is the last; with more attempts, {}", later.join(", ")),
        None => later.join(", "),
    };
    let cap = USUAL.max(policy.base().saturating_mul(BASES).min(LONGEST)).max(policy.base());
    Some(
        Found::fact(fact)
            // A jitter that is drawn before the cap would be lost at it.
            .mend([length("cap", cap)])
            .mend([length("cap", cap), word("jitter", "full")]),
    )
}

pub(in crate::lint) static CAP_NEAR_BASE: Rule = Rule {
    code: "S006",
    name: "cap-near-base",
    severity: Severity::Note,
    title: "the cap is near the base",
    why: "after a few retries the delays grow no more, so a long outage is knocked at as often as a short one",
    more: "It speaks for exponential and linear backoff whose cap is less than ten bases, where retries get so far. \
           The number of knocks in an outage of length T is about T divided by the cap.",
    judge: cap_near_base,
};

fn cap_near_base(subject: &Subject<'_>) -> Option<Found> {
    let (policy, cap) = (subject.policy, subject.policy.cap()?);
    let wanted = policy.base().saturating_mul(BASES);
    let (at, _) = subject.delays.iter().enumerate().find(|(_, (_, most))| *most >= cap)?;
    if !subject.grows() || cap >= wanted {
        return None;
    }
    let times = cap.as_secs_f64() / policy.base().as_secs_f64();
    let fact = format!("the cap of {} is {times:.1} times the base, and holds from retry {} on", brief(cap), at + 1);
    let found = Found::fact(fact);
    Some(if wanted <= LONGEST {
        found.mend([length("cap", wanted)]).mend([length("cap", wanted), word("jitter", "full")])
    } else {
        found.mend([length("base", cap / BASES)])
    })
}

pub(in crate::lint) static CAP_TOO_LONG: Rule = Rule {
    code: "S007",
    name: "cap-too-long",
    severity: Severity::Note,
    title: "delays of more than a minute",
    why: "whoever drew such a delay just before the service came back stays away for as long again",
    more: "It speaks where a delay of more than 60 s can come about: by a cap above it that retries reach, or in a \
           list. The last clients are back about one cap after the service. Google Cloud's documentation of truncated \
           exponential backoff names 32 s and 64 s as typical. Where nobody waits and attempts are expensive, longer \
           may be meant.",
    judge: cap_too_long,
};

fn cap_too_long(subject: &Subject<'_>) -> Option<Found> {
    let policy = subject.policy;
    if subject.longest() <= LONGEST {
        return None;
    }
    let (at, (_, most)) = subject.delays.iter().enumerate().find(|(_, (_, most))| *most > LONGEST)?;
    let found = Found::fact(format!("retry {} waits up to {}", at + 1, brief(*most)));
    match policy.backoff() {
        Backoff::List(list) => Some(found.mend([delays(list.iter().map(|delay| delay.min(LONGEST)))])),
        _ => {
            policy.cap().filter(|cap| subject.grows() && *cap > LONGEST)?;
            Some(found.mend([length("cap", LONGEST)]).mend([length("base", LONGEST / BASES), length("cap", LONGEST)]))
        }
    }
}
