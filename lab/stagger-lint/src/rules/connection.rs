use core::time::Duration;

use stagger_core::profile;
use stagger_core::schedule::Backoff;

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
    let zero = analysis.policy.stable_after().is_some_and(|lived| lived.is_zero());
    if !zero || !analysis.restarts_anything() {
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
              retries within an hour on average, and to those that never retry. Without a spread, the lost \
              connection counts as the first of the attempts. Keep retrying at the cap, and show the user how long the server has \
              been unreachable. A server that is gone for good can say so: a permanent error ends the retries at once.",
    check: gives_up,
};

/// The longest outage that a connection should survive.
const OUTAGE: Duration = Duration::from_secs(3_600);

fn gives_up(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let policy = analysis.policy;
    let kept_up = analysis.context.purpose == Some(Purpose::Reconnecting);
    // Only of retries whose delays are known.
    let attempts = analysis.attempts().filter(|attempts| attempts - 1 <= analysis.known_retries());
    let waits = attempts.and_then(|attempts| match attempts {
        1 => Some(policy.spread() / 2),
        attempts => policy.elapsed_mean(attempts - 1),
    });
    let gone = waits.into_iter().chain(policy.max_elapsed()).min().filter(|gone| kept_up && *gone < OUTAGE)?;
    // Without a spread, the loss is the first of them.
    let made = attempts.filter(|_| waits == Some(gone)).map(|most| most - u32::from(policy.spread().is_zero()));
    let lasting =
        |limit: &str| format!("an outage of more than about {}, and clients give up for good {limit}", brief(gone));
    let fact = match made {
        Some(0) => "clients that lose their connection give up for good, without an attempt".to_owned(),
        Some(1) => lasting("after a single attempt"),
        Some(attempts) => lasting(&format!("after {attempts} attempts")),
        None => lasting("at max-elapsed"),
    };
    let attempts = attempts.map(|_| value("max-attempts", "inf"));
    let elapsed = policy.max_elapsed().map(|_| value("max-elapsed", "none"));
    let with =
        |more: Option<_>| Change::Settings(attempts.clone().into_iter().chain(elapsed.clone()).chain(more).collect());
    let found = Diagnosis::new(fact);
    if matches!(policy.backoff(), Backoff::Stop) {
        return Some(found.suggest(profile::WEB_SOCKET.policy()));
    }
    // Further retries may reach a cap that cuts the jitter off, or come too fast for the server.
    let full = || with(Some(value("jitter", "full")));
    let window = analysis.window().unwrap_or(policy.spread().max(analysis.first_wave().unwrap_or_default()));
    let limits = || attempts.clone().into_iter().chain(elapsed.clone());
    let at_capacity = at_capacity(analysis, window);
    let at_capacity = at_capacity.into_iter().filter_map(|change| limits().try_fold(change, Change::and));
    let unlimited = with(None);
    let is_fit = analysis.window().is_none()
        || unlimited.clone().applied_to(policy).is_some_and(|(_, policy)| fits(&policy, analysis.context));
    let changes = if is_fit {
        [unlimited, full()].into_iter().chain(at_capacity).collect()
    } else {
        at_capacity.chain([unlimited, full()]).collect()
    };
    Some(Diagnosis { changes, ..found })
}
