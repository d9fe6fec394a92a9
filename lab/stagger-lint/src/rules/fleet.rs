//! The rules that compare a fleet with the capacity of its server: the first wave, the retries after it, and those of
//! a long outage.

use core::time::Duration;

use stagger_core::Policy;
use stagger_core::schedule::Backoff;
use stagger_core::text::Compact;

use super::changes::{base_for_full, delays_of_size, is_narrow, spread_over};
use crate::analysis::{PolicyAnalysis, brief, percent, round_up, scaled, thousands};
use crate::change::{Change, delays, duration, value};
use crate::context::{DeploymentContext, Purpose};
use crate::estimate;
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static SPREAD_TOO_SHORT: Rule = Rule {
    code: "S004",
    name: "spread-below-fleet",
    severity: Severity::Warning,
    title: "the first wave exceeds the server's capacity",
    rationale: "clients that lose their connections together arrive faster than the server accepts them, and every \
                rejected client retries",
    details: "Applies if clients and capacity are known and the spread (without one, the interval of the first delay) \
              is shorter than clients / capacity, the time the server needs to accept each client once. Does not apply \
              to calls whose callers wait (interactive, serverless, near, far), which cannot be spread over seconds. \
              The figures after \"estimate\" are those of `stagger simulate fluid` with a backlog of half a second.",
    check: spread_too_short,
};

fn spread_too_short(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let known = analysis.context;
    let (clients, capacity, window) = (known.clients?, known.capacity?, known.min_recovery_time()?);
    let width = analysis.first_wave()?;
    if known.is_waited_for() || analysis.has_single_client() || width >= window {
        return None;
    }
    let over = if width.is_zero() { "0s".to_owned() } else { brief(width) };
    let fact = format!(
        "{} clients at {capacity} need {}; this policy spreads the first wave over {over}",
        thousands(clients.get()),
        brief(window)
    );
    let changes = spread_over(analysis, window);
    let found = Diagnosis { changes, when_reported: Some(expected_attempts), ..Diagnosis::new(fact) };
    Some(found.advise("or let the server assign reservations: Admission"))
}

fn expected_attempts(analysis: &PolicyAnalysis<'_>) -> Option<String> {
    let estimate = estimate(analysis.policy, analysis.context)?;
    let (attempts, gave_up) = (estimate.attempts_per_client?, estimate.gave_up_ratio?);
    let mut text = format!("estimate: about {attempts:.1} attempts per client; the optimum is 1");
    match analysis.attempts() {
        Some(limit) if gave_up >= LEAST_GAVE_UP => {
            text += &format!("; with a limit of {limit}, {} give up", percent(gave_up));
        }
        _ => {}
    }
    Some(text)
}

/// A smaller share of clients that give up is not worth a word.
const LEAST_GAVE_UP: f64 = 0.005;

pub(crate) static CEILING_BELOW_SPREAD: Rule = Rule {
    code: "S024",
    name: "ceiling-below-spread",
    severity: Severity::Warning,
    title: "the retries of the first wave follow too soon",
    rationale: "after a spread, a failure is evidence that every client fails; retries within the spread add up to a \
                multiple of the first wave that the spread was made for",
    details: "Applies to long-lived connections and to fleets of known size if, while the server is still down, \
              attempts arrive at more than three times the rate of the first wave (or of the capacity, if it is \
              known and higher): clients come back evenly over the spread (without one, over the interval of the \
              first delay), and each retries until the last of them has come. With full jitter, a base of the \
              spread's length gives 2.3 times the rate, half of it 2.9, a quarter 3.8, and a twentieth 5.9 (cap a \
              minute or more); so the base should be of the size of the spread, and at least half of it. Does not \
              apply to calls whose callers wait, nor to a first wave that is too short, which S004 reports.",
    check: ceiling_below_spread,
};

/// The multiple of the first wave, or of the capacity, above which the rule applies.
const TIMES_OF_WAVE: f64 = 3.0;

fn ceiling_below_spread(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (known, policy) = (analysis.context, analysis.policy);
    let window = known.min_recovery_time();
    let is_spread_connection = known.purpose == Some(Purpose::Reconnecting) && !policy.spread().is_zero();
    let is_known_fleet = window.is_some() && !known.is_waited_for();
    if !(is_spread_connection || is_known_fleet) || analysis.has_single_client() || !analysis.retries() {
        return None;
    }
    let width = analysis.first_wave()?;
    if width.is_zero() {
        return None;
    }
    let retries = analysis.retries_within(width);
    let mut times = 1.0 + retries;
    if let Some(window) = window {
        // S004 reports a wave that is too short.
        if width < window {
            return None;
        }
        // Compared with the capacity, a spread longer than needed makes up for it.
        times *= window.as_secs_f64() / width.as_secs_f64();
    }
    if times <= TIMES_OF_WAVE {
        return None;
    }
    let first = format!("clients come back over {}, and each retries {retries:.1} times in this time", brief(width));
    let fact = match (known.capacity, known.clients) {
        (Some(capacity), Some(_)) => format!(
            "{first}: while the server is down, up to {} attempts per second arrive, {times:.1} times its capacity",
            thousands((capacity.get() * times) as u64)
        ),
        _ => format!("{first}: while the server is down, up to {times:.1} times the rate of the first wave arrives"),
    };
    let changes = delays_of_size(analysis, width).into_iter().map(Change::Settings).collect();
    Some(Diagnosis { changes, ..Diagnosis::new(fact) })
}

/// Returns whether a fleet of known size with this policy comes back at about the rate of the capacity.
pub(super) fn fits(policy: &Policy, context: &DeploymentContext) -> bool {
    let analysis = PolicyAnalysis::new(policy, context);
    let rules = [&SPREAD_TOO_SHORT, &RETRIES_ABOVE_CAPACITY, &CEILING_BELOW_SPREAD];
    rules.iter().all(|rule| (rule.check)(&analysis).is_none())
}

pub(crate) static RETRIES_ABOVE_CAPACITY: Rule = Rule {
    code: "S022",
    name: "knocking-exceeds-capacity",
    severity: Severity::Warning,
    title: "the retries of a long outage exceed the server's capacity",
    rationale: "a server that comes back is met by every client that is still retrying, and fails again under them",
    details: "Applies if clients and capacity are known, the delays have stopped growing (at the cap, at the end of \
              a list, or from the start), and clients / mean delay is more than twice the capacity: this many \
              attempts per second arrive as long as the server is down, and at the moment it returns. A spread does \
              not change it, because it acts on the loss of a connection, not on the retries. The suggestion raises \
              the mean delay to clients / capacity. Does not apply to calls whose callers wait, nor to limits of \
              attempts or time that end the retries before the server could accept each client once.",
    check: retries_above_capacity,
};

/// The multiple of the capacity above which the rule applies.
const TIMES_OF_RETRIES: f64 = 2.0;

/// Number of retries in which linear backoff reaches the suggested cap.
const STEPS: u32 = 4;

fn retries_above_capacity(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (known, policy) = (analysis.context, analysis.policy);
    let (clients, capacity, window) = (known.clients?, known.capacity?, known.min_recovery_time()?);
    if known.is_waited_for() || analysis.has_single_client() || !lasts(analysis, window) {
        return None;
    }
    let mean = policy.mean(analysis.known_retries())?;
    let rate = clients.get() as f64 / mean.as_secs_f64();
    let times = rate / capacity.get();
    if times <= TIMES_OF_RETRIES {
        return None;
    }
    let many = thousands(clients.get());
    let fact = if mean.is_zero() {
        format!("while the server is down, {many} clients retry without a pause")
    } else {
        let rate = thousands(rate as u64);
        format!(
            "while the server is down, {many} clients make about {rate} attempts per second: {times:.1} times its \
             capacity"
        )
    };
    let mut found = Diagnosis::new(fact);
    if analysis.delays.iter().all(|delay| is_narrow(*delay)) {
        // Without jitter, longer delays would only move the waves further apart.
        found.changes.extend(jittered(policy, window));
    }
    let longer = |delay: Duration| round_up(scaled(delay, window.as_secs_f64() / mean.as_secs_f64()));
    Some(match policy.backoff() {
        Backoff::Zero => {
            let text = policy.to_string().replacen("zero", "exponential", 1);
            let cap = round_up(window.saturating_mul(2));
            match text.parse::<Policy>().map(|policy| policy.to_builder().cap(cap).build()) {
                Ok(Ok(policy)) => found.suggest(policy),
                _ => found,
            }
        }
        Backoff::List(list) => {
            let last = list.iter().last()?;
            let others = || list.iter().take(list.len() - 1);
            found.suggest([delays(list.iter().chain([longer(last)]))]).suggest([delays(others().chain([longer(last)]))])
        }
        Backoff::Uniform { max, .. } => {
            found.suggest([value("range", format_args!("0s..{}", Compact(longer(*max).saturating_mul(2))))])
        }
        Backoff::Exponential { .. } | Backoff::Linear { .. } if analysis.grows() => {
            let cap = longer(policy.cap().unwrap_or(analysis.longest()));
            if matches!(policy.backoff(), Backoff::Linear { .. }) {
                // A step of seconds takes many retries to reach a longer cap.
                found = found.suggest([duration("step", cap / STEPS), duration("cap", cap)]);
            }
            let twice_the_window = duration("cap", round_up(window.saturating_mul(2)));
            found.suggest([duration("cap", cap)]).suggest([duration("base", cap / 10), duration("cap", cap)]).suggest([
                value("jitter", "full"),
                base_for_full(policy),
                twice_the_window,
            ])
        }
        _ => found.suggest([duration("base", longer(policy.base()))]),
    })
}

/// Returns the change to full jitter with a mean delay of clients / capacity.
fn jittered(policy: &Policy, window: Duration) -> Option<Change> {
    let (full, longest) = (value("jitter", "full"), round_up(window.saturating_mul(2)));
    Some(match policy.backoff() {
        Backoff::List(list) => Change::from([full, delays(list.iter().chain([longest]))]),
        Backoff::Exponential { .. } => Change::from([full, base_for_full(policy), duration("cap", longest)]),
        Backoff::Linear { .. } => Change::from([full, duration("step", longest / STEPS), duration("cap", longest)]),
        Backoff::Constant { .. } => Change::from([full, duration("base", longest)]),
        _ => return None,
    })
}

/// Returns whether the delays reach their final length, and the retries go on until the server could have accepted each
/// client once.
fn lasts(analysis: &PolicyAnalysis<'_>, window: Duration) -> bool {
    let policy = analysis.policy;
    let Some((_, last)) = analysis.delays.last() else { return false };
    if analysis.grows() && policy.cap() != Some(*last) {
        return false;
    }
    let retries = analysis.known_retries();
    let last_retry = match analysis.attempts() {
        Some(attempts) if attempts - 1 <= retries => policy.elapsed_mean(retries),
        _ => None,
    };
    [last_retry, policy.max_elapsed()].into_iter().flatten().all(|end| end >= window)
}
