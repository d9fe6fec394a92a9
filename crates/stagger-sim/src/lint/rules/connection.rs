use core::time::Duration;

use stagger_core::profile;

use super::super::analysis::{PolicyAnalysis, from_to};
use super::super::change::duration;
use super::super::rule::{Diagnosis, Rule, Severity};

pub(in crate::lint) static RESET_ON_OPEN: Rule = Rule {
    code: "S015",
    name: "reset-on-open",
    severity: Severity::Warning,
    title: "the count starts again with every connection",
    why: "a server that accepts connections and closes them is hammered at the first delay, for ever",
    more: "It speaks for `stable-after=0s`, where there is anything that starts again: delays that change, a limit, or \
           a spread. What was lost should have lived for a while before it counts as healthy; the moment to decide is \
           when it is lost.",
    check: reset_on_open,
};

/// What a connection must have lived: as in our own profile.
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
    let again = if first.1.is_zero() { "at once".to_owned() } else { format!("after {}", from_to(first)) };
    let fact = format!("a connection that opens and is lost at once is tried again {again}, every time");
    Some(Diagnosis::new(fact).suggest([duration("stable-after", HEALTHY)]))
}
