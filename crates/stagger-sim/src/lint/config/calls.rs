use core::time::Duration;
use std::collections::HashMap;

use stagger_config::{Entry, EntryKind, Format, Limit, RetryBudget, Setting};

use super::does::does;
use super::draft::Draft;
use super::edits::Editor;
use super::remedy::{self, Remedy};
use crate::lint::rules::config::{NO_DELAY, NO_RETRY_BUDGET, NO_TIMEOUT, RETRIES_BY_DEFAULT};
use crate::lint::{DeploymentContext, Finding, Idempotency, check};

/// More retries at once than this limit nothing.
const NO_LIMIT: u32 = 1_000;

/// Checks calls. Equal policies are checked once.
pub(super) struct Calls<'a> {
    editor: &'a Editor<'a>,
    checked: HashMap<String, Vec<Finding>>,
    /// Whether the lack of a limit for the whole file has been reported.
    is_reported: bool,
}

impl<'a> Calls<'a> {
    pub(super) fn new(editor: &'a Editor<'a>) -> Self {
        Self { editor, checked: HashMap::new(), is_reported: false }
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
        let has_one =
            matches!(entry.format, Format::Grpc | Format::Envoy | Format::Istio | Format::EnvoyGateway | Format::Aws);
        let budget = entry.settings.budget.filter(|_| has_one)?;
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

    /// Applies the rules for policies whose findings can be mended in a file of this system.
    fn policy(&mut self, entry: &Entry) -> Vec<Draft> {
        let settings = &entry.settings;
        let Some(policy) = entry.policy() else { return Vec::new() };
        let overall = settings.timeout.and_then(|timeout| timeout.value.at());
        // A limit that is only that of the whole call says nothing about attempts.
        let attempt = settings
            .attempt_timeout
            .and_then(|limit| limit.value.at().filter(|length| limit.is_stated() || overall != Some(*length)));
        let known = attempt.into_iter().fold(DeploymentContext::default(), DeploymentContext::attempt_timeout);
        let known = overall.into_iter().fold(known, DeploymentContext::deadline);
        let known = if entry.may_repeat_unsafe == Some(true) { known.idempotency(Idempotency::No) } else { known };
        let key = format!("{policy} {known:?}");
        let found = self.checked.entry(key).or_insert_with(|| check(&policy, &known));
        let drafts = found.iter().filter(|found| is_for(entry, found.rule().code(), overall)).map(|found| {
            let place = match found.rule().code() {
                "S013" => settings.timeout.and_then(|timeout| timeout.span()),
                _ => settings.attempts.and_then(|attempts| attempts.span()),
            };
            let draft = Draft::new(found.rule(), &entry.path, place.unwrap_or(entry.span)).fact(does(entry));
            let Remedy { text, advice, edits } = remedy::of_policy(found.rule().code(), entry, self.editor);
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
