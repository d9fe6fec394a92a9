//! The rules about clients that retry at the same time.

use core::time::Duration;

use stagger_core::{Policy, profile, schedule::Backoff, text::Compact};

use super::changes::{full, is_narrow, spread_over};
use crate::analysis::{PolicyAnalysis, brief, from_to, percent, round_up};
use crate::change::{delays, duration, value};
use crate::context::Purpose;
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static NO_JITTER: Rule = Rule {
    code: "S001",
    name: "no-jitter",
    severity: Severity::Warning,
    title: "no jitter",
    rationale: "clients that fail together retry together, every time: no later wave is wider than the first",
    details: "Applies if the delay before some retry, other than the first one and those at the cap, is the same for \
              every client: an interval of a single length. Exponential backoff without jitter makes as many \
              attempts as a constant delay of one second and takes many times as long, because its waves stay as \
              narrow as the first. Does not apply to a single client (`clients` = 1), nor behind a spread of at least \
              clients / capacity, if they are known: the first wave, and so each later one, is then as wide as the \
              server needs. See M. Brooker, \"Exponential Backoff And Jitter\", AWS, 2015, and the table in the guide, \
              \"Choosing a strategy\".",
    check: no_jitter,
};

fn no_jitter(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    if analysis.has_single_client() {
        return None;
    }
    let policy = analysis.policy;
    if analysis.window().is_some_and(|window| policy.spread() >= window) {
        return None;
    }
    let is_equal = |(least, most): &(Duration, Duration)| least == most && !most.is_zero();
    let fact = if analysis.is_jittered() {
        let mut later = analysis.delays.iter().enumerate().skip(1);
        let (at, (delay, _)) = later.find(|(_, bounds)| is_equal(bounds) && Some(bounds.1) != policy.cap())?;
        format!("every client waits exactly {} before retry {}", brief(*delay), at + 1)
    } else if analysis.delays.iter().any(is_equal) {
        let delays: Vec<String> = analysis.delays.iter().take(4).map(|(delay, _)| brief(*delay)).collect();
        let more = if analysis.delays.len() > delays.len() { " ..." } else { "" };
        format!("every client waits the same delays: {}{more}", delays.join(", "))
    } else {
        return None;
    };
    let found = Diagnosis::new(fact)
        .suggest(full(analysis))
        .suggest([value("jitter", "full")])
        .suggest([value("jitter", "full"), value("floor", "0s")])
        .suggest([value("jitter", "full"), duration("cap", policy.base().saturating_mul(10))]);
    Some(suggest_at_capacity(found, analysis))
}

/// Full jitter halves the mean delay, so a fleet may also need a cap at which it arrives at the rate of the capacity.
fn suggest_at_capacity(found: Diagnosis, analysis: &PolicyAnalysis<'_>) -> Diagnosis {
    let Some(window) = analysis.context.min_recovery_time() else { return found };
    found.suggest([value("jitter", "full"), duration("cap", round_up(window.saturating_mul(2)))])
}

pub(crate) static LOST_AT_CAP: Rule = Rule {
    code: "S002",
    name: "jitter-lost-at-cap",
    severity: Severity::Warning,
    title: "jitter is lost at the cap",
    rationale: "the cap is applied after the random draw and cuts it off, so clients retry in step in long outages",
    details: "Applies if at least a tenth of the clients wait exactly the cap before some retry although the policy \
              has jitter; the share is computed from the distribution of the delay. This happens in libraries that \
              draw first and cap afterward: socket.io, tenacity, Polly, resilience4j, stubborn-io, and decorrelated \
              jitter as it was published. The jitters of this library are drawn below the cap and lose nothing.",
    check: lost_at_cap,
};

/// The share of clients at the cap from which on the rule applies.
const MIN_SHARE: f64 = 0.1;
/// The share from which on all clients count as waiting the cap, within the precision of the share.
const ALL_CLIENTS: f64 = 0.995;
/// Number of retries at the cap to examine. Their shares only grow.
const MAX_RETRIES_AT_CAP: usize = 24;

fn lost_at_cap(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    if analysis.has_single_client() || !analysis.is_jittered() {
        return None;
    }
    let cap = analysis.policy.cap()?;
    // If there was no jitter before the cap, the cap does not remove any.
    let reached = analysis.delays.iter().position(|(_, most)| *most == cap)?;
    let is_equal = |(least, most): (Duration, Duration)| least == most;
    if is_equal(analysis.delays[reached.saturating_sub(1)]) && is_equal(analysis.delays[reached]) {
        return None;
    }
    let at_cap = (1..).zip(&analysis.delays).filter(|(_, (_, most))| *most == cap).map(|(n, _)| n);
    let at_cap: Vec<u32> = at_cap.take(MAX_RETRIES_AT_CAP).collect();
    let share = |n: u32| analysis.share_at_cap(n, MIN_SHARE);
    // The shares only grow, so the last one decides whether the rule applies.
    let last = *at_cap.last()?;
    if share(last) < MIN_SHARE {
        return None;
    }
    let first = at_cap.partition_point(|n| share(*n) < MIN_SHARE);
    let all_clients = first + at_cap[first..].partition_point(|n| share(*n) < ALL_CLIENTS);
    let shares = |retries: &[u32]| {
        let texts: Vec<String> = retries.iter().map(|n| format!("retry {n}: {}", percent(share(*n)))).collect();
        texts.join(", ")
    };
    let mut found;
    if let Some(n) = at_cap.get(all_clients) {
        found = Diagnosis::new(format!("from retry {n} on every client waits exactly {}", brief(cap)));
        let before = &at_cap[first..all_clients.min(first + 3)];
        if !before.is_empty() {
            found = found.and(format!("share of clients before that: {}", shares(before)));
        }
    } else {
        let first = at_cap.get(first).copied().unwrap_or(last);
        let mut ends = vec![first, last];
        ends.dedup();
        found = Diagnosis::new(format!("from retry {first} on many clients wait exactly {}", brief(cap)))
            .and(format!("share of clients: {}", shares(&ends)));
    }
    let found = found
        .suggest(full(analysis))
        .suggest([value("jitter", "full")])
        .suggest([value("jitter", "full"), duration("cap", analysis.policy.base().saturating_mul(10))]);
    Some(suggest_at_capacity(found, analysis))
}

pub(crate) static EQUAL_FIRST_DELAY: Rule = Rule {
    code: "S003",
    name: "first-delay-in-step",
    severity: Severity::Warning,
    title: "the first retries of all clients coincide",
    rationale: "a failure that affects all clients at once, such as a restart or a network failure, makes all of \
                them retry at the same instant",
    details: "Applies if the first delay is zero, or the same for every client, and no spread precedes it. A delay \
              whose jitter is narrower than a twentieth of it, such as 1 %, counts as the same. (If no retry has \
              jitter and the first delay is not zero, S001 reports it.) A first delay of zero doubles the load on \
              whatever fails. RFC 6455, section 7.2.3, asks WebSocket clients for a random first delay of up to 5 s. \
              For long-lived connections the remedy is a spread: it delays the first action of every client, whereas \
              jitter only spreads clients over one base.",
    check: equal_first_delay,
};

/// The spread suggested for long-lived connections of a fleet of unknown size: that of the `web-socket` profile.
const SPREAD: Duration = profile::WEB_SOCKET.policy().spread();

fn equal_first_delay(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (least, most) = *analysis.delays.first()?;
    let is_reported_by_s001 = !analysis.is_jittered() && !most.is_zero();
    let is_spread = !is_narrow((least, most)) || !analysis.policy.spread().is_zero();
    if analysis.has_single_client() || is_spread || is_reported_by_s001 {
        return None;
    }
    let fact = if analysis.longest().is_zero() {
        "there is no delay: every client retries immediately, every time".to_owned()
    } else if most.is_zero() {
        "the first retry of every client follows immediately".to_owned()
    } else {
        let when = if least == most { format!("exactly {}", brief(most)) } else { from_to((least, most)) };
        format!("every client makes its first retry {when} after a common failure")
    };
    let window = analysis.context.min_recovery_time();
    let spread = window.unwrap_or(SPREAD);
    let mut found = Diagnosis::new(fact);
    if analysis.context.purpose == Some(Purpose::Reconnecting) || window.is_some() {
        found.changes = spread_over(analysis, spread);
        return Some(suggest_later_first(found, analysis));
    }
    Some(suggest_later_first(found, analysis).suggest([duration("spread", round_up(spread))]))
}

/// Suggests to draw the first delay from a wider interval, and from a later one if it is zero.
fn suggest_later_first(found: Diagnosis, analysis: &PolicyAnalysis<'_>) -> Diagnosis {
    let policy = analysis.policy;
    match policy.backoff() {
        // Exponential backoff with the default base and cap.
        Backoff::Zero => match policy.to_string().replacen("zero", "exponential", 1).parse::<Policy>() {
            Ok(policy) => found.suggest(policy),
            Err(_) => found,
        },
        Backoff::List(list) => {
            let later = delays(list.iter().filter(|delay| !delay.is_zero()));
            found
                .suggest([later.clone()])
                .suggest([later, value("jitter", "equal")])
                .suggest([value("jitter", "equal")])
        }
        Backoff::Uniform { max, .. } => found.suggest([value("range", format_args!("0s..{}", Compact(*max)))]),
        _ => found
            .suggest(full(analysis))
            .suggest([value("jitter", "full")])
            .suggest([duration("floor", policy.base() / 2)])
            .suggest([value("jitter", "full"), value("floor", "0s")]),
    }
}
