use core::time::Duration;

use stagger_core::schedule::Backoff;

use super::jitter::base_for_full;
use crate::analysis::{PolicyAnalysis, brief, round_up};
use crate::change::{Change, delays, duration, value};
use crate::context::Purpose;
use crate::rule::{Diagnosis, Rule, Severity};

/// The longest cap recommended for most uses: the upper end of the guide's range of 10 to 60 s.
const LONGEST: Duration = Duration::from_secs(60);
/// The cap suggested for a policy without one: the cap of the default policy.
const USUAL: Duration = match stagger_core::Policy::DEFAULT.cap() {
    Some(cap) => cap,
    None => LONGEST,
};
/// The longest cap recommended for background work: with ten attempts, most jobs outlast an outage of half an hour.
const LONGEST_OF_JOBS: Duration = Duration::from_secs(300);
/// Minimum ratio of cap to base.
const BASES: u32 = 10;
/// A base from which on the first delay is long enough: the spread of the profile for connections.
const PATIENT: Duration = stagger_core::profile::WEB_SOCKET.policy().spread();

pub(crate) static NO_CAP: Rule = Rule {
    code: "S005",
    name: "no-cap",
    severity: Severity::Warning,
    title: "no cap",
    rationale: "delays that double without a cap soon exceed every outage: the service is back, but its clients are \
                not",
    details: "Applies to exponential and linear backoff that grows and has no cap, even with few attempts, because \
              the limit of attempts may be raised later. Caps of 10 to 60 s suit most uses, 1 to 5 s interactive \
              calls.",
    check: no_cap,
};

fn no_cap(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let policy = analysis.policy;
    if !analysis.retries() || !analysis.grows() || policy.cap().is_some() {
        return None;
    }
    let upto = |n: u32| Some(format!("retry {n} waits up to {}", brief(policy.bounds(n)?.1)));
    let later: Vec<String> = [10, 20].into_iter().filter_map(upto).collect();
    let last = analysis.attempts().map(|attempts| attempts - 1).filter(|last| *last < 10);
    let fact = match last.and_then(upto) {
        Some(last) => format!("{last} and is the last; with more attempts, {}", later.join(", ")),
        None => later.join(", "),
    };
    let cap = USUAL.max(policy.base().saturating_mul(BASES).min(LONGEST)).max(policy.base());
    // A fleet arrives at the rate of the capacity if the mean delay is clients / capacity.
    let cap = analysis.window().map_or(cap, |window| round_up(window.saturating_mul(2)).max(cap));
    // A jitter drawn before the cap would be lost at the cap.
    let with_jitter = Change::from([duration("cap", cap), value("jitter", "full")]);
    let base = analysis.window().map(|_| base_for_full(policy));
    let of_a_fleet = base.and_then(|base| with_jitter.clone().and(base));
    Some(Diagnosis::new(fact).suggest([duration("cap", cap)]).suggest_some(of_a_fleet).suggest(with_jitter))
}

pub(crate) static CAP_NEAR_BASE: Rule = Rule {
    code: "S006",
    name: "cap-near-base",
    severity: Severity::Note,
    title: "the cap is close to the base",
    rationale: "delays stop growing after a few retries, so a long outage receives as many attempts per second as a \
                short one",
    details: "Applies to exponential and linear backoff whose cap is less than ten times the base, if enough retries \
              are allowed to reach it. A client makes about T / cap attempts in an outage of length T. Does not apply \
              to a base of 10 s or more, whose delays are long from the first retry on, nor to a base of half the \
              spread to the whole spread (S024) whose cap is at least twice the base, nor to a cap of twice clients / \
              capacity, if they are known.",
    check: cap_near_base,
};

fn cap_near_base(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (policy, cap) = (analysis.policy, analysis.policy.cap()?);
    let wanted = policy.base().saturating_mul(BASES);
    let (at, _) = analysis.delays.iter().enumerate().find(|(_, (_, most))| *most >= cap)?;
    // A base of the spread's length is as long as it should be.
    let is_of_size =
        policy.base() <= policy.spread() && policy.base() >= policy.spread() / 2 && cap >= policy.base() * 2;
    // At twice clients / capacity, a fleet with full jitter arrives at the rate of the capacity.
    let enough = analysis.window().map(|window| round_up(window.saturating_mul(2)));
    let is_enough = is_of_size || policy.base() >= PATIENT || enough.is_some_and(|enough| cap >= enough);
    if !analysis.grows() || cap >= wanted || is_enough {
        return None;
    }
    let times = cap.as_secs_f64() / policy.base().as_secs_f64();
    let fact = format!("the cap of {} is {times:.1} times the base and applies from retry {} on", brief(cap), at + 1);
    let found = Diagnosis::new(fact);
    let wanted = enough.map_or(wanted, |enough| wanted.min(enough));
    Some(if wanted <= LONGEST || enough.is_some() {
        found.suggest([duration("cap", wanted)]).suggest([duration("cap", wanted), value("jitter", "full")])
    } else {
        found.suggest([duration("base", cap / BASES)])
    })
}

pub(crate) static CAP_TOO_LONG: Rule = Rule {
    code: "S007",
    name: "cap-too-long",
    severity: Severity::Note,
    title: "delays exceed one minute",
    rationale: "a client that draws such a delay just before the service recovers stays disconnected for that long",
    details: "Applies if a delay can exceed 60 s, or five minutes for background work: through a cap above 60 s that retries reach, or through a delay \
              list. If twice clients / capacity is more, that is the limit: a shorter cap would bring the \
              clients back faster than the server accepts them. The last clients are back about one cap after the service. Google Cloud's documentation of \
              truncated exponential backoff names 32 s and 64 s as typical.",
    check: cap_too_long,
};

fn cap_too_long(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let policy = analysis.policy;
    // At a cap of twice clients / capacity, clients with full jitter arrive at the rate of the capacity.
    let needed = analysis.context.min_recovery_time().filter(|_| !analysis.context.is_waited_for());
    let usual = if analysis.context.purpose == Some(Purpose::Background) { LONGEST_OF_JOBS } else { LONGEST };
    let longest = needed.map_or(usual, |needed| round_up(needed.saturating_mul(2)).max(usual));
    if analysis.longest() <= longest {
        return None;
    }
    let (at, (_, most)) = analysis.delays.iter().enumerate().find(|(_, (_, most))| *most > longest)?;
    let found = Diagnosis::new(format!("retry {} waits up to {}", at + 1, brief(*most)));
    if let Backoff::List(list) = policy.backoff() {
        return Some(found.suggest([delays(list.iter().map(|delay| delay.min(longest)))]));
    }
    policy.cap().filter(|cap| analysis.grows() && *cap > longest)?;
    let both = Change::from([duration("base", longest / BASES), duration("cap", longest)]);
    // A shorter base would shorten the first wave of a fleet.
    let both = needed.is_none().then_some(both);
    Some(found.suggest([duration("cap", longest)]).suggest_some(both))
}
