//! What a suggestion makes worse.

use core::time::Duration;

use stagger_core::Policy;

use crate::DeploymentContext;
use crate::analysis::{PolicyAnalysis, brief, scaled};

/// A difference above this factor is mentioned.
const NOTICEABLE: f64 = 1.1;

/// The outages for which attempts are compared.
const OUTAGES: [Duration; 3] = [Duration::from_secs(10), Duration::from_secs(60), Duration::from_secs(600)];

/// Returns what the change of a policy costs: a spread also delays the loss of a single connection, longer delays keep
/// clients of a fleet away after the server has returned, and shorter ones make more attempts while it is down.
pub(super) fn of(policy: &Policy, changed: &Policy, context: &DeploymentContext) -> Vec<String> {
    let spread = changed.spread();
    let spread = (spread > policy.spread())
        .then(|| format!("it delays every single loss too: by {} on average", brief(spread / 2)));
    let [before, after] = [policy, changed].map(|policy| PolicyAnalysis::new(policy, context));
    let of_a_fleet = after.window().is_some();
    let later = returns_later(&before, &after).filter(|_| of_a_fleet);
    let more = more_attempts(&before, &after).filter(|_| of_a_fleet);
    spread.into_iter().chain(later).chain(more).collect()
}

fn returns_later(before: &PolicyAnalysis<'_>, after: &PolicyAnalysis<'_>) -> Option<String> {
    let longer = |nth: usize, (_, most): &(Duration, Duration)| {
        let was = before.delays.get(nth).or(before.delays.last()).map_or(Duration::ZERO, |(_, most)| *most);
        *most > scaled(was, NOTICEABLE)
    };
    let is_longer = after.delays.iter().enumerate().any(|(nth, bounds)| longer(nth, bounds));
    is_longer.then(|| format!("clients return up to {} after the server", brief(after.longest())))
}

fn more_attempts(before: &PolicyAnalysis<'_>, after: &PolicyAnalysis<'_>) -> Option<String> {
    let times = |down: Duration| {
        let [before, after] = [before, after].map(|analysis| 1.0 + analysis.retries_within(down));
        after / before
    };
    let (times, down) =
        OUTAGES.map(|down| (times(down), down)).into_iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    (times > NOTICEABLE).then(|| format!("up to {times:.1} times as many attempts in an outage of {}", brief(down)))
}
