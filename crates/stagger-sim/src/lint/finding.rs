use core::fmt;

use stagger_core::Policy;

use super::DeploymentContext;
use super::analysis::PolicyAnalysis;
use super::change::Change;
use super::rule::{Diagnosis, Rule, Severity};
use super::rules::ALL;

/// Something that a rule has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    rule: &'static Rule,
    facts: Vec<String>,
    help: Suggestion,
}

/// What mends a finding. It reads as one line: the settings first, then what else there is to say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suggestion {
    change: Option<(Change, Policy)>,
    advice: Option<String>,
}

impl Finding {
    pub(super) fn of_log(rule: &'static Rule, facts: Vec<String>, advice: impl Into<String>) -> Self {
        Self { rule, facts, help: Suggestion { change: None, advice: Some(advice.into()) } }
    }

    /// The rule.
    #[must_use]
    pub const fn rule(&self) -> &'static Rule {
        self.rule
    }

    /// What it is, with the figures of this policy: one or more lines.
    #[must_use]
    pub fn facts(&self) -> &[String] {
        &self.facts
    }

    /// What mends it.
    #[must_use]
    pub const fn suggestion(&self) -> &Suggestion {
        &self.help
    }
}

impl Suggestion {
    /// Settings in the words of the policy language, `jitter=full cap=10s`, to be set in the policy; or a whole policy,
    /// where no setting of this one helps. `None` if what mends it is not in the policy. With it the rule is silent.
    #[must_use]
    pub fn settings(&self) -> Option<String> {
        self.change.as_ref().map(|(change, _)| change.to_string())
    }

    /// The policy with these settings.
    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        self.change.as_ref().map(|(_, policy)| policy)
    }

    /// What helps besides the settings, or instead of them.
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

/// What is said where each change that is known would leave the rule something to find.
const TOGETHER: &str = "no single change mends it: what is named above hangs together";

/// What the rules find in a policy, in the order of their codes.
#[must_use]
pub fn check(policy: &Policy, context: &DeploymentContext) -> Vec<Finding> {
    let found = all_found(policy, context);
    let before: Vec<&Rule> = found.iter().map(|(rule, _)| *rule).collect();
    found
        .into_iter()
        .map(|(rule, found)| {
            let best = |changes: Vec<Change>| {
                let changes = changes.into_iter().filter_map(|change| change.applied_to(policy));
                best(rule, changes, context, &before)
            };
            let change = best(found.changes).or_else(|| best(found.last_resort.into_iter().collect()));
            let advice = match (&change, found.advice) {
                (None, None) => Some(TOGETHER.to_owned()),
                (_, advice) => advice,
            };
            let help = Suggestion { change, advice };
            Finding { rule, facts: found.facts, help }
        })
        .collect()
}

/// The policy after what [`check`] would change in it, one finding after the other, as long as each change leaves
/// fewer warnings, or as many and fewer notes. What is left to be found in it is not the policy's to mend, or two rules
/// want opposite things. What rules in `allowed` find is meant, and stays as it is.
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
        let found = check(&latest, context);
        let changes =
            found.iter().filter(|found| !allowed.contains(&found.rule)).filter_map(|found| found.help.policy());
        match changes.into_iter().find(|changed| count(changed) < now) {
            Some(changed) => latest = *changed,
            None => return latest,
        }
    }
}

fn all_found(policy: &Policy, context: &DeploymentContext) -> Vec<(&'static Rule, Diagnosis)> {
    let analysis = PolicyAnalysis::new(policy, context);
    ALL.into_iter().filter_map(|rule| Some((rule, (rule.check)(&analysis)?))).collect()
}

/// The first change that silences a rule, if possible without waking another.
fn best(
    rule: &Rule,
    changes: impl Iterator<Item = (Change, Policy)>,
    context: &DeploymentContext,
    before: &[&Rule],
) -> Option<(Change, Policy)> {
    let mut second = None;
    for (change, policy) in changes {
        let after = all_found(&policy, context);
        if after.iter().any(|(found, _)| *found == rule) {
            continue;
        }
        if after.iter().all(|(found, _)| before.contains(found)) {
            return Some((change, policy));
        }
        second = second.or(Some((change, policy)));
    }
    second
}
