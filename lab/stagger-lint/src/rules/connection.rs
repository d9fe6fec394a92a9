//! The rules about long-lived connections.

use core::time::Duration;

use stagger_core::schedule::Backoff;
use stagger_core::{Policy, profile};

use super::changes::at_capacity;
use super::fleet::fits;
use crate::analysis::{PolicyAnalysis, brief, from_to};
use crate::change::{Change, duration, value};
use crate::context::Purpose;
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static RESET_ON_OPEN: Rule = Rule {
    code: "S015",
    name: "reset-on-open",
    severity: Severity::Warning,
    title: "the backoff resets whenever a connection opens",
    rationale: "a server that accepts connections and closes them at once receives reconnects at the first delay, \
                forever",
    details: "Applies to `stable-after=0s` if there is anything to reset: growing delays, a limit, or a spread. A \
              connection should stay open for a while before it counts as healthy; whether it did is decided when it \
              is lost.",
    check: reset_on_open,
};

/// The suggested time until a connection counts as healthy: that of the `web-socket` profile.
const HEALTHY: Duration = match profile::WEB_SOCKET.policy().stable_after() {
    Some(lived) => lived,
    None => Duration::from_secs(10),
};

fn reset_on_open(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    if analysis.policy.stable_after() != Some(Duration::ZERO) || !analysis.restarts_anything() {
        return None;
    }
    let first = *analysis.delays.first()?;
    let again = if first.1.is_zero() { "immediately".to_owned() } else { format!("after {}", from_to(first)) };
    let fact = format!("a connection that opens and is lost at once is retried {again}, every time");
    Some(Diagnosis::new(fact).suggest([duration("stable-after", HEALTHY)]))
}

pub(crate) static GIVES_UP: Rule = Rule {
    code: "S023",
    name: "connection-gives-up",
    severity: Severity::Warning,
    title: "a long outage disconnects the clients for good",
    rationale: "a client that has given up stays disconnected until it is restarted, long after the server is back",
    details: "Applies to long-lived connections (`--for reconnecting`) whose limit of attempts or time ends the \
              retries within an hour on average, and to those that never retry. Without a spread, the lost connection \
              counts as the first of the attempts. Keep retrying at the cap, and show the user how long the server has \
              been unreachable. A server that is gone for good can say so: a permanent error ends the retries at once.",
    check: gives_up,
};

/// The longest outage that a connection should survive.
const OUTAGE: Duration = Duration::from_secs(3_600);

fn gives_up(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let policy = analysis.policy;
    if analysis.context.purpose != Some(Purpose::Reconnecting) {
        return None;
    }
    let attempts = match analysis.attempts() {
        // Only of these retries the delays are known.
        Some(attempts) if attempts - 1 <= analysis.known_retries() => Some(attempts),
        _ => None,
    };
    let waits = match attempts {
        Some(1) => Some(policy.spread() / 2),
        Some(attempts) => policy.elapsed_mean(attempts - 1),
        None => None,
    };
    let gone = [waits, policy.max_elapsed()].into_iter().flatten().min()?;
    if gone >= OUTAGE {
        return None;
    }
    let found = Diagnosis::new(given_up(policy, gone, if waits == Some(gone) { attempts } else { None }));
    if matches!(policy.backoff(), Backoff::Stop) {
        return Some(found.suggest(profile::WEB_SOCKET.policy()));
    }
    let mut limits = Vec::new();
    if attempts.is_some() {
        limits.push(value("max-attempts", "inf"));
    }
    if policy.max_elapsed().is_some() {
        limits.push(value("max-elapsed", "none"));
    }
    let unlimited = Change::Settings(limits.clone());
    // Further retries may reach a cap that cuts the jitter off, or come too fast for the server.
    let with_jitter = Change::Settings([limits.clone(), vec![value("jitter", "full")]].concat());
    let window = analysis.window().unwrap_or(policy.spread().max(analysis.first_wave().unwrap_or_default()));
    limits.reverse();
    let mut changes = Vec::new();
    for settings in at_capacity(analysis, window) {
        changes.push(Change::Settings([limits.clone(), settings].concat()));
    }
    let is_fit = match (analysis.window(), unlimited.clone().applied_to(policy)) {
        (None, _) => true,
        (Some(_), Some((_, policy))) => fits(&policy, analysis.context),
        (Some(_), None) => false,
    };
    let at = if is_fit { 0 } else { changes.len() };
    changes.splice(at..at, [unlimited, with_jitter]);
    Some(Diagnosis { changes, ..found })
}

/// Says when clients give up: after so many attempts, or else at the limit of the elapsed time.
fn given_up(policy: &Policy, gone: Duration, attempts: Option<u32>) -> String {
    let when = match attempts {
        // Without a spread, the loss is the first of them.
        Some(1) if policy.spread().is_zero() => {
            return "clients that lose their connection give up for good, without an attempt".to_owned();
        }
        Some(attempts) => match attempts - u32::from(policy.spread().is_zero()) {
            1 => "after a single attempt".to_owned(),
            made => format!("after {made} attempts"),
        },
        None => "at max-elapsed".to_owned(),
    };
    format!("an outage of more than about {}, and clients give up for good {when}", brief(gone))
}
