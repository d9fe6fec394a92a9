use core::cell::{Cell, OnceCell};
use core::fmt;

use stagger_core::Policy;

use crate::DeploymentContext;
use crate::analysis::{PolicyAnalysis, brief};
use crate::change::Change;
use crate::rule::{Diagnosis, FurtherFact, Rule, Severity, Simulation};
use crate::rules::{ALL, at_capacity};
use crate::trial::{Aim, Trial};

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
///
/// If the size of the fleet or the load of the calls is known, so is the capacity, each suggestion has been simulated
/// in three outages ([`DeploymentContext::down`]): that of a note makes neither attempts nor peak nor recovery more
/// than a tenth worse, and that of a warning does not raise their product. None is made that cannot be simulated.
#[must_use]
pub fn check(policy: &Policy, context: &DeploymentContext) -> Vec<Finding> {
    let analysis = PolicyAnalysis::new(policy, context);
    let trials = Trials::new(policy, context);
    findings(policy, &trials, policy).into_iter().filter_map(|unconfirmed| unconfirmed.confirmed(&analysis)).collect()
}

/// Returns whether a rule warns of a policy, without the time that suggestions take.
#[must_use]
pub fn warns(policy: &Policy, context: &DeploymentContext) -> bool {
    let analysis = PolicyAnalysis::new(policy, context);
    let mut warnings = ALL.into_iter().filter(|rule| rule.severity() == Severity::Warning);
    warnings.any(|rule| match (rule.check)(&analysis) {
        Some(Diagnosis { simulation: Some(simulation), .. }) => simulation(&analysis).is_some(),
        found => found.is_some(),
    })
}

/// The outages in which suggestions are tried, which begin with the first one.
struct Trials<'a> {
    context: &'a DeploymentContext,
    policy: Policy,
    trial: OnceCell<Option<Trial<'a>>>,
}

impl<'a> Trials<'a> {
    fn new(policy: &Policy, context: &'a DeploymentContext) -> Self {
        Self { context, policy: *policy, trial: OnceCell::new() }
    }

    fn get(&self) -> Option<&Trial<'a>> {
        self.trial.get_or_init(|| Trial::new(&self.policy, self.context)).as_ref()
    }

    fn allows(&self, aim: Aim, before: &Policy, after: &Policy) -> bool {
        self.get().is_none_or(|trial| trial.allows(aim, before, after))
    }
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

/// Returns the findings. The changes of warnings are tried against `original`, the policy before any fix; those of
/// notes against this one, so that they do not take back what a warning has changed.
fn findings(policy: &Policy, trials: &Trials<'_>, original: &Policy) -> Vec<Unconfirmed> {
    let context = trials.context;
    let found = all_found(policy, context);
    let before: Vec<&'static Rule> = found.iter().map(|(rule, _)| *rule).collect();
    let mut findings = Vec::new();
    for (rule, diagnosis) in found {
        let Diagnosis { facts, when_reported, simulation, changes, last_resort, advice } = diagnosis;
        let reference = if rule.severity() == Severity::Warning { original } else { policy };
        let search = Search { rule, policy, reference, trials, before: &before, refused: Cell::new(false) };
        let mut change = search.best(changes);
        if let (None, Some(last_resort)) = (&change, last_resort) {
            change = search.best(vec![last_resort]);
        }
        if change.is_none() && search.refused.get() && rule.severity() == Severity::Warning {
            change = search.best(at_capacity(&PolicyAnalysis::new(policy, context)));
        }
        let mut parts = match &change {
            Some((_, changed)) => costs(policy, changed, trials),
            None => Vec::new(),
        };
        match trials.get() {
            Some(trial) if change.is_none() && search.refused.get() && !trial.can_simulate() => parts
                .push("this is too large to be simulated, and no change is suggested that was not tried".to_owned()),
            Some(trial) if change.is_none() && search.refused.get() => {
                let said = match rule.severity() {
                    Severity::Warning => "no change that was tried costs less",
                    Severity::Note => "each change that was tried makes attempts, peak or recovery worse",
                };
                parts.push(format!("{said} in outages of {} (simulated)", trial.lengths()));
            }
            _ if change.is_none() && advice.is_none() => parts.push(NO_SINGLE_CHANGE.to_owned()),
            _ => {}
        }
        parts.extend(advice);
        let advice = if parts.is_empty() { None } else { Some(parts.join("; ")) };
        let finding = Finding { rule, facts, help: Suggestion { change, advice } };
        findings.push(Unconfirmed { finding, further: when_reported, simulation });
    }
    findings
}

/// Applies the suggestions of [`check`] one after the other, as long as each leaves fewer warnings, or as many warnings
/// and fewer notes, and all of them together are worth it as each alone is. Findings that remain cannot be fixed in the
/// policy, or two rules contradict each other. Findings of rules in `allowed` are ignored.
#[must_use]
pub fn fix(policy: &Policy, context: &DeploymentContext, allowed: &[&Rule]) -> Policy {
    let trials = Trials::new(policy, context);
    let mut latest = *policy;
    let mut open = count(&latest, context, allowed);
    let mut aim: Option<Aim> = None;
    'improve: loop {
        for Unconfirmed { finding, .. } in findings(&latest, &trials, policy) {
            let Some(changed) = finding.help.policy() else { continue };
            if allowed.contains(&finding.rule) {
                continue;
            }
            let left = count(changed, context, allowed);
            let of_rule = Aim::of(finding.rule);
            let of_all = aim.map_or(of_rule, |aim| aim.and(of_rule));
            if left < open && (aim.is_none() || trials.allows(of_all, policy, changed)) {
                (latest, open, aim) = (*changed, left, Some(of_all));
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

/// The search for the change that silences a rule.
struct Search<'a, 'c> {
    rule: &'a Rule,
    policy: &'a Policy,
    /// The policy that a changed one is compared with.
    reference: &'a Policy,
    trials: &'a Trials<'c>,
    /// The rules that apply before.
    before: &'a [&'static Rule],
    /// Whether the simulation refused a change that would have silenced the rule.
    refused: Cell<bool>,
}

impl Search<'_, '_> {
    /// Returns the first change after which the rule no longer applies and which the simulation allows, preferring one
    /// that triggers no other rule (for a fleet of known size: no other warning).
    ///
    /// A rule names changes, the best first. Each is applied, and all rules run again. So a suggestion always silences
    /// its rule, and no rule has to know the others.
    fn best(&self, changes: Vec<Change>) -> Option<(Change, Policy)> {
        let context = self.trials.context;
        let mut second = None;
        // For a fleet of known size, a note is better than the attempts that a change without it would add.
        let is_fleet = context.min_recovery_time().is_some() && !context.is_waited_for();
        let matters = |rule: &Rule| !is_fleet || rule.severity() == Severity::Warning;
        for (change, changed) in changes.into_iter().filter_map(|change| change.applied_to(self.policy)) {
            let after = all_found(&changed, context);
            if after.iter().any(|(found, _)| *found == self.rule) {
                continue;
            }
            if !self.trials.allows(Aim::of(self.rule), self.reference, &changed) {
                self.refused.set(true);
                continue;
            }
            if after.iter().all(|(found, _)| self.before.contains(found) || !matters(found)) {
                return Some((change, changed));
            }
            if second.is_none() {
                second = Some((change, changed));
            }
        }
        second
    }
}

/// Returns what the change of a policy costs: a spread also delays the loss of a single connection, and what the
/// simulation says.
fn costs(policy: &Policy, changed: &Policy, trials: &Trials<'_>) -> Vec<String> {
    let mut costs = Vec::new();
    if changed.spread() > policy.spread() {
        costs.push(format!("it delays every single loss too: by {} on average", brief(changed.spread() / 2)));
    }
    if let Some(trial) = trials.get() {
        costs.extend(trial.costs(policy, changed));
    }
    costs
}
