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
        if facts.is_empty() {
            return None;
        }
        let help = Suggestion { change: None, advice: Some(advice.to_owned()) };
        Some(Self { rule, facts, help })
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
        let Finding { rule, mut facts, help } = self.finding;
        if let Some(simulation) = self.simulation {
            let Diagnosis { facts, advice, .. } = simulation(analysis)?;
            return Some(Finding { rule, facts, help: Suggestion { advice, ..help } });
        }
        if let Some(further) = self.further {
            facts.extend(further(analysis));
        }
        Some(Finding { rule, facts, help })
    }
}

fn findings(policy: &Policy, context: &DeploymentContext) -> Vec<Unconfirmed> {
    let found = all_found(policy, context);
    let before: Vec<&Rule> = found.iter().map(|(rule, _)| *rule).collect();
    let mut findings = Vec::new();
    for (rule, diagnosis) in found {
        let Diagnosis { facts, when_reported, simulation, changes, last_resort, advice } = diagnosis;
        let mut change = best(rule, changes, policy, context, &before);
        if let (None, Some(last_resort)) = (&change, last_resort) {
            change = best(rule, vec![last_resort], policy, context, &before);
        }
        let mut parts = match &change {
            Some((_, changed)) => costs(policy, changed, context),
            None => Vec::new(),
        };
        match advice {
            Some(advice) => parts.push(advice),
            None if change.is_none() => parts.push(NO_SINGLE_CHANGE.to_owned()),
            None => {}
        }
        let advice = if parts.is_empty() { None } else { Some(parts.join("; ")) };
        let finding = Finding { rule, facts, help: Suggestion { change, advice } };
        findings.push(Unconfirmed { finding, further: when_reported, simulation });
    }
    findings
}

/// Applies the suggestions of [`check`] one after the other, as long as each leaves fewer warnings, or as many warnings
/// and fewer notes. Findings that remain cannot be fixed in the policy, or two rules contradict each other. Findings of
/// rules in `allowed` are ignored.
#[must_use]
pub fn fix(policy: &Policy, context: &DeploymentContext, allowed: &[&Rule]) -> Policy {
    let mut latest = *policy;
    let mut open = count(&latest, context, allowed);
    'improve: loop {
        for Unconfirmed { finding, .. } in findings(&latest, context) {
            let Some(changed) = finding.help.policy() else { continue };
            if allowed.contains(&finding.rule) {
                continue;
            }
            let left = count(changed, context, allowed);
            if left < open {
                (latest, open) = (*changed, left);
                continue 'improve;
            }
        }
        return latest;
    }
}

/// Returns the numbers of warnings and of notes that are not allowed.
fn count(policy: &Policy, context: &DeploymentContext, allowed: &[&Rule]) -> (usize, usize) {
    let (mut warnings, mut notes) = (0, 0);
    for (rule, _) in all_found(policy, context) {
        if allowed.contains(&rule) {
            continue;
        }
        match rule.severity() {
            Severity::Warning => warnings += 1,
            Severity::Note => notes += 1,
        }
    }
    (warnings, notes)
}

fn all_found(policy: &Policy, context: &DeploymentContext) -> Vec<(&'static Rule, Diagnosis)> {
    let analysis = PolicyAnalysis::new(policy, context);
    ALL.into_iter().filter_map(|rule| Some((rule, (rule.check)(&analysis)?))).collect()
}

/// Returns the first change after which the rule no longer applies, preferring one that triggers no other rule (for a
/// fleet of known size: no other warning).
///
/// A rule names changes, the best first. Each is applied, and all rules run again. So a suggestion always silences its
/// rule, and no rule has to know the others.
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
        if second.is_none() {
            second = Some((change, policy));
        }
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
    let mut costs = Vec::new();
    if changed.spread() > policy.spread() {
        costs.push(format!("it delays every single loss too: by {} on average", brief(changed.spread() / 2)));
    }
    let before = PolicyAnalysis::new(policy, context);
    let after = PolicyAnalysis::new(changed, context);
    if after.window().is_some() {
        costs.extend(returns_later(&before, &after));
        costs.extend(more_attempts(&before, &after));
    }
    costs
}

fn returns_later(before: &PolicyAnalysis<'_>, after: &PolicyAnalysis<'_>) -> Option<String> {
    for (nth, (_, most)) in after.delays.iter().enumerate() {
        let was = match before.delays.get(nth).or(before.delays.last()) {
            Some((_, most)) => *most,
            None => Duration::ZERO,
        };
        if *most > scaled(was, NOTICEABLE) {
            return Some(format!("clients return up to {} after the server", brief(after.longest())));
        }
    }
    None
}

fn more_attempts(before: &PolicyAnalysis<'_>, after: &PolicyAnalysis<'_>) -> Option<String> {
    let (mut most, mut longest) = (0.0, Duration::ZERO);
    for down in OUTAGES {
        let times = (1.0 + after.retries_within(down)) / (1.0 + before.retries_within(down));
        if times >= most {
            (most, longest) = (times, down);
        }
    }
    if most <= NOTICEABLE {
        return None;
    }
    Some(format!("up to {most:.1} times as many attempts in an outage of {}", brief(longest)))
}
