use core::time::Duration;

use stagger_core::profile;

use super::super::change::length;
use super::super::rule::{Found, Rule, Severity};
use super::super::subject::{Subject, from_to};

pub(in crate::lint) static RESET_ON_OPEN: Rule = Rule {
    code: "S015",
    name: "reset-on-open",
    severity: Severity::Warning,
    title: "the count starts again with every connection",
    why: "a server that accepts connections and closes them is hammered at the first delay, for ever",
    more: "It speaks for `stable-after=0s`, where there is anything that starts again: delays that change, a limit, or \
           a spread. What was lost should have lived for a while before it counts as healthy; the moment to decide is \
           when it is lost.",
    judge: reset_on_open,
};

/// What a connection must have lived: as in our own profile.
const HEALTHY: Duration = match profile::WEB_SOCKET.policy().stable_after() {
    Some(lived) => lived,
    None => Duration::from_secs(10),
};

fn reset_on_open(subject: &Subject<'_>) -> Option<Found> {
    let zero = subject.policy.stable_after().is_some_and(|lived| lived.is_zero());
    if !zero || !subject.restarts_anything() {
        return None;
    }
    let first = *subject.delays.first()?;
    let again = if first.1.is_zero() { "at once".to_owned() } else { format!("after {}", from_to(first)) };
    let fact = format!("a connection that opens and is lost at once is tried again {again}, every time");
    Some(Found::fact(fact).mend([length("stable-after", HEALTHY)]))
}
