use core::cell::RefCell;
use core::time::Duration;
use std::collections::{HashMap, HashSet};

use stagger_config::{Entry, EntryKind, Format, Limit, RetryBudget, Setting, Settings};
use stagger_core::Policy;

use super::circumstances::{Circumstances, SIMULATED, limits_retries, overall};
use super::draft::{Draft, Remedy, does};
use super::edits::Editor;
use super::remedy::{self, Aim};
use super::translate::span;
use crate::rules::config::{NO_DELAY, NO_RETRY_BUDGET, NO_TIMEOUT, RETRIES_BY_DEFAULT};
use crate::{DeploymentContext, Finding, Rule, check};

/// More retries at once than this limit nothing.
const NO_LIMIT: u32 = 1_000;

/// What has been found in policies. Equal ones are checked once, also while fixes are tried.
#[derive(Default)]
pub(super) struct Checked(RefCell<HashMap<String, Vec<Finding>>>);

impl Checked {
    fn findings(&self, policy: &Policy, known: &DeploymentContext) -> Vec<Finding> {
        let key = format!("{policy} {known:?}");
        self.0.borrow_mut().entry(key).or_insert_with(|| check(policy, known)).clone()
    }
}

/// Checks calls.
pub(super) struct Calls<'a> {
    editor: &'a Editor<'a>,
    /// What is known of the deployment beside the file.
    given: &'a DeploymentContext,
    checked: &'a Checked,
    simulated: HashSet<String>,
    /// Whether the lack of a limit for the whole file has been reported.
    is_reported: bool,
}

impl<'a> Calls<'a> {
    pub(super) fn new(editor: &'a Editor<'a>, given: &'a DeploymentContext, checked: &'a Checked) -> Self {
        Self { editor, given, checked, simulated: HashSet::new(), is_reported: false }
    }

    /// Checks calls, and what is repeated like one.
    pub(super) fn check(&mut self, entry: &Entry) -> Vec<Draft> {
        let mut drafts = Vec::new();
        let settings = &entry.settings;
        let is_call = entry.kind == EntryKind::Call;
        let is_waited_for = is_call || entry.kind == EntryKind::Step;
        if is_waited_for && has_no_time_limit(settings) {
            let span = span(settings.timeout).unwrap_or(entry.span);
            drafts.push(self.draft(Draft::new(&NO_TIMEOUT, &entry.path, span), entry, remedy::timeout));
        }
        let Some(attempts) = settings.attempts else { return drafts };
        // What is not known may be one attempt.
        if matches!(attempts.value, Limit::At(1) | Limit::Unknown) {
            return drafts;
        }
        if is_call {
            let has_default = matches!(entry.format, Format::Istio | Format::Nginx | Format::Haproxy);
            if has_default && !attempts.is_stated() {
                let draft = Draft::new(&RETRIES_BY_DEFAULT, &entry.path, entry.span);
                drafts.push(self.draft(draft, entry, remedy::stated));
            }
            // Where a profile of Linkerd has a budget that is not known, that limits them.
            let is_budgeted = entry.format == Format::Linkerd && settings.budget.is_none();
            if !is_budgeted && retries_at_once(settings) {
                drafts.push(self.draft(Draft::new(&NO_DELAY, &entry.path, entry.span), entry, remedy::delay));
            }
            drafts.extend(self.budget(entry));
        }
        drafts.extend(self.policy(entry));
        drafts
    }

    /// Checks a limit of the retries of other calls.
    pub(super) fn limit(&mut self, entry: &Entry) -> Option<Draft> {
        self.budget(entry)
    }

    fn budget(&mut self, entry: &Entry) -> Option<Draft> {
        let budget = entry.settings.budget?;
        if !remedy::has_budget(entry.format) {
            return None;
        }
        let what = match budget.value {
            RetryBudget::Unlimited => "no limit of the retries of all calls".to_owned(),
            RetryBudget::Concurrent(most) if most >= NO_LIMIT => {
                format!("{most} retries at once are as good as no limit")
            }
            _ => return None,
        };
        // A service config has one limit for all methods, and a profile of AWS for all languages.
        if matches!(entry.format, Format::Grpc | Format::Aws) && core::mem::replace(&mut self.is_reported, true) {
            return None;
        }
        let span = budget.span().unwrap_or(entry.span);
        Some(Draft::new(&NO_RETRY_BUDGET, &entry.path, span).fact(what).remedy(remedy::budget(entry, self.editor)))
    }

    /// Applies the rules for policies: those whose findings can be mended in a file of this system, and those that find
    /// something only because of what is known beside the file.
    pub(super) fn policy(&mut self, entry: &Entry) -> Vec<Draft> {
        let settings = &entry.settings;
        let Some(policy) = entry.policy() else { return Vec::new() };
        let Circumstances { stated, mut known, shorter } = Circumstances::of(entry, self.given);
        if self.simulated.len() < SIMULATED {
            self.simulated.insert(policy.to_string());
        } else if !self.simulated.contains(&policy.to_string()) {
            known.requests = None;
        }
        let stated_findings = self.checked.findings(&policy, &stated);
        let found = self.checked.findings(&policy, &known);
        let overall = overall(entry);
        let is_reported = |rule: &Rule| match rule.code() {
            // The system's own limit ends a call.
            "S012" => shorter.is_some(),
            // A budget is one of calls.
            "S016" if entry.kind == EntryKind::Restart => false,
            code if entry.kind != EntryKind::Restart && is_for(entry, code, overall) => true,
            // What is known beside the file makes the difference.
            _ => stated_findings.iter().all(|found| found.rule() != rule),
        };
        let mut drafts = Vec::new();
        for finding in found.iter().filter(|found| is_reported(found.rule())) {
            let place = match finding.rule().code() {
                "S012" | "S013" => span(settings.timeout),
                "S016" => span(settings.budget),
                _ => span(settings.attempts),
            };
            let aim = Aim { finding, deadline: known.deadline, shorter };
            drafts.push(
                Draft::new(finding.rule(), &entry.path, place.unwrap_or(entry.span))
                    .fact(does(entry))
                    .facts(finding.facts().iter().cloned())
                    .remedy(remedy::of_policy(&aim, entry, self.editor)),
            );
        }
        drafts
    }

    fn draft(&self, draft: Draft, entry: &Entry, remedy: fn(&Entry, &Editor<'_>) -> Remedy) -> Draft {
        draft.fact(does(entry)).remedy(remedy(entry, self.editor))
    }
}

/// Returns whether the file, or a default of the system, says that neither a call nor an attempt ends in time.
fn has_no_time_limit(settings: &Settings) -> bool {
    match (settings.timeout, settings.attempt_timeout) {
        (None, None) => false,
        (Some(limit), None) | (None, Some(limit)) => is_none(&limit),
        (Some(overall), Some(each)) => is_none(&overall) && is_none(&each),
    }
}

/// Returns whether calls are retried without a delay, and nothing bounds these retries: few tries in little time, or a
/// budget.
fn retries_at_once(settings: &Settings) -> bool {
    match settings.base {
        Some(base) if base.value.is_zero() => {}
        _ => return false,
    }
    if settings.attempts.is_some_and(|attempts| attempts.value == Limit::At(2)) && !has_no_time_limit(settings) {
        return false;
    }
    !limits_retries(settings)
}

/// Returns whether a finding about a policy can be mended in such a file.
fn is_for(entry: &Entry, code: &str, overall: Option<Duration>) -> bool {
    let can_be_drawn =
        matches!(entry.format, Format::StepFunctions | Format::Resilience4j | Format::DotNet | Format::Dapr);
    match code {
        "S001" => can_be_drawn,
        "S005" => can_be_drawn && entry.format != Format::Dapr,
        "S011" => overall.is_none() && !is_unknown(entry.settings.timeout),
        // A limit of nginx or of the gateway ends no attempt, but the series of them.
        "S013" => !matches!(entry.format, Format::Nginx | Format::SpringGateway),
        // Whether a job may run again is for those who wrote the retry to say: it has no other purpose.
        "S019" => !matches!(entry.format, Format::GitLab | Format::GitHub),
        _ => false,
    }
}

fn is_unknown(limit: Option<Setting<Limit<Duration>>>) -> bool {
    limit.is_some_and(|limit| limit.value == Limit::Unknown)
}

fn is_none(limit: &Setting<Limit<Duration>>) -> bool {
    limit.value == Limit::None
}
