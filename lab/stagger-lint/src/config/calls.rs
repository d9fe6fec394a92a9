use core::cell::RefCell;
use core::time::Duration;
use std::collections::{HashMap, HashSet};

use stagger_config::{Entry, EntryKind, Format, Limit, RetryBudget, Setting};
use stagger_core::Policy;

use super::circumstances::{Circumstances, SIMULATED, overall};
use super::draft::{Draft, does};
use super::edits::Editor;
use super::remedy::{self, Aim, Remedy};
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
        let span = settings.timeout.and_then(|timeout| timeout.span()).unwrap_or(entry.span);
        let limits = [settings.timeout, settings.attempt_timeout].into_iter().flatten();
        let says_none = limits.clone().count() > 0 && limits.into_iter().all(|limit| is_none(&limit));
        if is_waited_for && says_none {
            drafts.push(self.draft(Draft::new(&NO_TIMEOUT, &entry.path, span), entry, remedy::timeout));
        }
        let retries = settings.attempts.is_some_and(|attempts| attempts.value != Limit::At(1));
        if !retries {
            return drafts;
        }
        let by_default = matches!(entry.format, Format::Istio | Format::Nginx | Format::Haproxy)
            && settings.attempts.is_some_and(|attempts| !attempts.is_stated());
        if is_call && by_default {
            drafts.push(self.draft(Draft::new(&RETRIES_BY_DEFAULT, &entry.path, entry.span), entry, remedy::stated));
        }
        let is_at_once = settings.base.is_some_and(|base| base.value.is_zero());
        // What cannot wait can be bounded by few tries in little time, or by a budget.
        let is_bounded = settings.attempts.is_some_and(|attempts| attempts.value == Limit::At(2))
            && settings.timeout.is_some_and(|timeout| !is_none(&timeout));
        let has_budget = settings.budget.is_some_and(|budget| budget.value != RetryBudget::Unlimited);
        if is_call && is_at_once && !is_bounded && !has_budget {
            drafts.push(self.draft(Draft::new(&NO_DELAY, &entry.path, entry.span), entry, remedy::delay));
        }
        if is_call {
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
        let budget = entry.settings.budget.filter(|_| remedy::has_budget(entry.format))?;
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
        let draft = Draft::new(&NO_RETRY_BUDGET, &entry.path, span).fact(what);
        let Remedy { text, advice, edits } = remedy::budget(entry, self.editor);
        Some(draft.advise(advice).edits(text, edits))
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
        let plain = self.checked.findings(&policy, &stated);
        let found = self.checked.findings(&policy, &known);
        let overall = overall(entry);
        let is_reported = |rule: &Rule| match rule.code() {
            // The system's own limit ends a call.
            "S012" => shorter.is_some(),
            // A budget is one of calls.
            "S016" if entry.kind == EntryKind::Restart => false,
            code => {
                let is_usual = entry.kind != EntryKind::Restart && is_for(entry, code, overall);
                is_usual || plain.iter().all(|found| found.rule() != rule)
            }
        };
        let drafts = found.iter().filter(|found| is_reported(found.rule())).map(|found| {
            let place = match found.rule().code() {
                "S012" | "S013" => settings.timeout.and_then(|timeout| timeout.span()),
                "S016" => settings.budget.and_then(|budget| budget.span()),
                _ => settings.attempts.and_then(|attempts| attempts.span()),
            };
            let draft = Draft::new(found.rule(), &entry.path, place.unwrap_or(entry.span)).fact(does(entry));
            let aim = Aim { finding: found, deadline: known.deadline, shorter };
            let Remedy { text, advice, edits } = remedy::of_policy(&aim, entry, self.editor);
            draft.facts(found.facts().iter().cloned()).advise(advice).edits(text, edits)
        });
        drafts.collect()
    }

    fn draft(&self, draft: Draft, entry: &Entry, remedy: fn(&Entry, &Editor<'_>) -> Remedy) -> Draft {
        let Remedy { text, advice, edits } = remedy(entry, self.editor);
        draft.fact(does(entry)).advise(advice).edits(text, edits)
    }
}

/// Returns whether a finding about a policy can be mended in such a file.
fn is_for(entry: &Entry, code: &str, overall: Option<Duration>) -> bool {
    let can_be_drawn =
        matches!(entry.format, Format::StepFunctions | Format::Resilience4j | Format::DotNet | Format::Dapr);
    match code {
        "S001" => can_be_drawn,
        "S005" => can_be_drawn && entry.format != Format::Dapr,
        "S011" => overall.is_none(),
        // A limit of nginx ends no attempt, but the series of them.
        "S013" => entry.format != Format::Nginx,
        // Whether a job may run again is for those who wrote the retry to say: it has no other purpose.
        "S019" => !matches!(entry.format, Format::GitLab | Format::GitHub),
        _ => false,
    }
}

fn is_none(limit: &Setting<Limit<Duration>>) -> bool {
    limit.value == Limit::None
}
