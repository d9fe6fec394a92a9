use core::fmt;
use core::time::Duration;

use stagger_core::Policy;

use crate::DeploymentContext;
use crate::analysis::{PolicyAnalysis, brief, scaled};
use crate::change::Change;
use crate::rule::{Diagnosis, FurtherFact, Rule, Severity, Simulation};
use crate::rules::ALL;

/// A problem that a rule has found in a policy or a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    rule: &'static Rule,
    facts: Vec<String>,
    help: Suggestion,
}

/// How to fix a finding. Displayed as one line: first the settings, then further advice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suggestion {
    change: Option<(Change, Policy)>,
    advice: Option<String>,
}

impl Finding {
    /// Creates a finding; returns `None` if there are no facts.
    pub(crate) fn with_advice(rule: &'static Rule, facts: Vec<String>, advice: &str) -> Option<Self> {
        let help = Suggestion { change: None, advice: Some(advice.to_owned()) };
        (!facts.is_empty()).then_some(Self { rule, facts, help })
    }

    /// Returns the rule.
    #[must_use]
    pub const fn rule(&self) -> &'static Rule {
        self.rule
    }

    /// Returns what was found, with the figures of this policy: one or more lines.
    #[must_use]
    pub fn facts(&self) -> &[String] {
        &self.facts
    }

    /// Returns how to fix it.
    #[must_use]
    pub const fn suggestion(&self) -> &Suggestion {
        &self.help
    }
}

impl Suggestion {
    /// Returns the settings to change, in the policy language, like `jitter=full cap=10s`; or a complete policy if no
    /// setting of this one helps. `None` if the fix lies outside the policy. With these settings the rule no longer
    /// applies.
    #[must_use]
    pub fn settings(&self) -> Option<String> {
        self.change.as_ref().map(|(change, _)| change.to_string())
    }

    /// Returns the policy with these settings.
    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        self.change.as_ref().map(|(_, policy)| policy)
    }

    /// Returns the settings to change, one by one.
    #[cfg(feature = "config")]
    pub(super) fn change(&self) -> Option<&Change> {
        self.change.as_ref().map(|(change, _)| change)
    }

    /// Returns further advice, which complements or replaces the settings.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.change, &self.advice) {
            (Some((change, _)), Some(advice)) => write!(f, "{change} ({advice})"),
            (Some((change, _)), None) => change.fmt(f),
            (None, Some(advice)) => f.write_str(advice),
            (None, None) => Ok(()),
        }
    }
}

/// The advice if the rule would still apply after each known change.
const NO_SINGLE_CHANGE: &str = "no single change fixes this: the settings named above depend on each other";

/// Checks a policy against all rules. Returns the findings, ordered by code.
#[must_use]
pub fn check(policy: &Policy, context: &DeploymentContext) -> Vec<Finding> {
    let analysis = PolicyAnalysis::new(policy, context);
    findings(policy, context).into_iter().filter_map(|unconfirmed| unconfirmed.confirmed(&analysis)).collect()
}

/// A finding without what takes long to compute.
struct Unconfirmed {
    finding: Finding,
    further: Option<FurtherFact>,
    simulation: Option<Simulation>,
}

impl Unconfirmed {
    fn confirmed(self, analysis: &PolicyAnalysis<'_>) -> Option<Finding> {
        let Finding { rule, facts, help } = self.finding;
        if let Some(simulation) = self.simulation {
            let Diagnosis { facts, advice, .. } = simulation(analysis)?;
            return Some(Finding { rule, facts, help: Suggestion { advice, ..help } });
        }
        let further = self.further.and_then(|fact| fact(analysis));
        Some(Finding { rule, facts: facts.into_iter().chain(further).collect(), help })
    }
}

fn findings(policy: &Policy, context: &DeploymentContext) -> Vec<Unconfirmed> {
    let found = all_found(policy, context);
    let before: Vec<&Rule> = found.iter().map(|(rule, _)| *rule).collect();
    let finding = |(rule, diagnosis): (_, Diagnosis)| {
        let Diagnosis { facts, when_reported, simulation, changes, last_resort, advice } = diagnosis;
        let best = |changes: Vec<Change>| best(rule, changes, policy, context, &before);
        let change = best(changes).or_else(|| best(Vec::from_iter(last_resort)));
        let advice = advice.or_else(|| change.is_none().then(|| NO_SINGLE_CHANGE.to_owned()));
        let costs = change.as_ref().map_or(Vec::new(), |(_, changed)| costs(policy, changed, context));
        let advice = costs.into_iter().chain(advice).reduce(|cost, advice| format!("{cost}; {advice}"));
        let finding = Finding { rule, facts, help: Suggestion { change, advice } };
        Unconfirmed { finding, further: when_reported, simulation }
    };
    found.into_iter().map(finding).collect()
}

/// Applies the suggestions of [`check`] one after the other, as long as each leaves fewer warnings, or as many warnings
/// and fewer notes. Findings that remain cannot be fixed in the policy, or two rules contradict each other. Findings of
/// rules in `allowed` are ignored.
#[must_use]
pub fn fix(policy: &Policy, context: &DeploymentContext, allowed: &[&Rule]) -> Policy {
    let count = |policy: &Policy| {
        let found = all_found(policy, context);
        let of = |severity| move |rule: &&Rule| rule.severity() == severity && !allowed.contains(rule);
        let rules = || found.iter().map(|(rule, _)| *rule);
        (rules().filter(of(Severity::Warning)).count(), rules().filter(of(Severity::Note)).count())
    };
    let mut latest = *policy;
    loop {
        let now = count(&latest);
        let found = findings(&latest, context);
        let open = found.iter().map(|found| &found.finding).filter(|finding| !allowed.contains(&finding.rule));
        match open.filter_map(|finding| finding.help.policy()).find(|changed| count(changed) < now) {
            Some(changed) => latest = *changed,
            None => return latest,
        }
    }
}

fn all_found(policy: &Policy, context: &DeploymentContext) -> Vec<(&'static Rule, Diagnosis)> {
    let analysis = PolicyAnalysis::new(policy, context);
    ALL.into_iter().filter_map(|rule| Some((rule, (rule.check)(&analysis)?))).collect()
}

/// Returns the first change after which the rule no longer applies, preferring one that triggers no other rule (for a
/// fleet of known size: no other warning).
fn best(
    rule: &Rule,
    changes: Vec<Change>,
    policy: &Policy,
    context: &DeploymentContext,
    before: &[&Rule],
) -> Option<(Change, Policy)> {
    let mut second = None;
    // For a fleet of known size, a note is better than the attempts that a change without it would add.
    let is_fleet = context.min_recovery_time().is_some() && !context.is_waited_for();
    let matters = |rule: &Rule| !is_fleet || rule.severity() == Severity::Warning;
    for (change, policy) in changes.into_iter().filter_map(|change| change.applied_to(policy)) {
        let after = all_found(&policy, context);
        if after.iter().any(|(found, _)| *found == rule) {
            continue;
        }
        if after.iter().all(|(found, _)| before.contains(found) || !matters(found)) {
            return Some((change, policy));
        }
        second = second.or(Some((change, policy)));
    }
    second
}

/// A difference above this factor is mentioned.
const NOTICEABLE: f64 = 1.1;

/// The outages for which attempts are compared.
const OUTAGES: [Duration; 3] = [Duration::from_secs(10), Duration::from_secs(60), Duration::from_secs(600)];

/// Returns what the change of a policy costs: a spread also delays the loss of a single connection, longer delays keep
/// clients of a fleet away after the server has returned, and shorter ones make more attempts while it is down.
fn costs(policy: &Policy, changed: &Policy, context: &DeploymentContext) -> Vec<String> {
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
