use core::time::Duration;

use stagger_core::profile;

use super::super::analysis::{PolicyAnalysis, from_to};
use super::super::change::duration;
use super::super::rule::{Diagnosis, Rule, Severity};

pub(in crate::lint) static RESET_ON_OPEN: Rule = Rule {
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
