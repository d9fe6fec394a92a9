//! What is known of where a file is used: what its entries say, and what is given beside it.

use core::time::Duration;
use std::collections::HashSet;

use stagger_config::{Entry, EntryKind, Format, Limit, RetryBudget, Settings};

use super::remedy::has_budget;
use crate::context::Fact;
use crate::{Budgeted, DeploymentContext, Idempotency};

/// Policies of a file that are simulated under the load that is given, if they differ. The load is not applied to more.
pub(super) const SIMULATED: usize = 64;

/// A fact about the deployment that was given for a file, and that changes nothing in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnusedFact {
    fact: Fact,
    reason: &'static str,
}

impl UnusedFact {
    /// Returns the name that the command line has for it, such as `attempt-timeout`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.fact.name()
    }

    /// Returns why it is not used: a clause without a capital and a full stop.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.reason
    }
}

/// What is known of the calls of an entry.
pub(super) struct Circumstances {
    /// What the file says.
    pub(super) stated: DeploymentContext,
    /// That, and what is given beside it.
    pub(super) known: DeploymentContext,
    /// The shortest time limit that is given, if the system lets a call last longer.
    pub(super) shorter: Option<Duration>,
}

impl Circumstances {
    /// Adds what is given to what the file says of an entry. The file has the last word about its own limits.
    pub(super) fn of(entry: &Entry, given: &DeploymentContext) -> Self {
        let mut stated = DeploymentContext {
            attempt_timeout: attempt_timeout(entry),
            deadline: overall(entry),
            ..DeploymentContext::default()
        };
        if entry.may_repeat_unsafe == Some(true) {
            stated.idempotency = Some(Idempotency::No);
        }
        let mut known = stated;
        for fact in Fact::ALL {
            if fact.is_in(given) && refused(fact, given, entry).is_none() {
                fact.add(given, &mut known);
            }
        }
        // What the system ends by itself outlasts no longer limit.
        let ends = ends_after(entry).unwrap_or(Duration::MAX);
        known.lease = known.lease.filter(|limit| ends > *limit);
        known.invocation = known.invocation.filter(|limit| ends > *limit);
        let deadline = if given.deadline.is_some() { known.deadline } else { None };
        let limits = [deadline, known.lease, known.invocation];
        let shorter = limits.into_iter().flatten().filter(|limit| ends > *limit).min();
        if known != stated && known.budget.is_none() && refused(Fact::Budget, given, entry).is_some() {
            known.budget = Some(Budgeted::Yes);
        }
        Self { stated, known, shorter }
    }
}

/// Returns the facts that are used by none of these entries, with the reason of the first.
pub(super) fn unused(entries: &[Entry], given: &DeploymentContext) -> Vec<UnusedFact> {
    let mut unused = Vec::new();
    for fact in Fact::ALL.into_iter().filter(|fact| fact.is_in(given)) {
        // `None` if one of the entries uses it.
        let reasons: Option<Vec<_>> = entries.iter().map(|entry| refused(fact, given, entry)).collect();
        if let Some(reasons) = reasons {
            let reason = reasons.first().copied().unwrap_or("the file says nothing about retries");
            unused.push(UnusedFact { fact, reason });
        }
    }
    let policies: HashSet<_> = entries.iter().filter_map(|entry| Some(entry.policy()?.to_string())).collect();
    if Fact::Requests.is_in(given) && policies.len() > SIMULATED {
        let reason = "more than 64 policies of the file differ: only the first of them are simulated under this load";
        unused.push(UnusedFact { fact: Fact::Requests, reason });
    }
    unused
}

/// Returns why the fact is not used for an entry, if it is not.
fn refused(fact: Fact, given: &DeploymentContext, entry: &Entry) -> Option<&'static str> {
    match entry.kind {
        EntryKind::Probe => return Some("the file has probes alone, which are not calls"),
        EntryKind::Limit => return Some("the file limits retries, and has none itself"),
        _ => {}
    }
    if entry.policy().is_none() {
        return Some("the file does not say how often, or after which delays, calls are retried");
    }
    if entry.settings.never_retries() {
        return Some("nothing in the file is retried");
    }
    match fact {
        Fact::RetryAfter => Some("whether a system waits as long as a server asks is not read from its file"),
        Fact::Clients | Fact::Capacity | Fact::Down | Fact::Tick => None,
        _ if entry.kind == EntryKind::Restart => Some("the file starts a process again, which is not a call"),
        Fact::AttemptTimeout if attempt_timeout(entry).is_some() => {
            Some("the file, or a default of the system, limits an attempt")
        }
        Fact::Budget if limits_retries(&entry.settings) => {
            Some("the file, or a default of the system, limits the retries of all calls together")
        }
        // That of Istio stands in another object.
        Fact::Budget
            if entry.settings.budget.is_none() && has_budget(entry.format) && entry.format != Format::Istio =>
        {
            Some("the file limits the retries of all calls together, by a number that is not known")
        }
        Fact::Idempotency if given.idempotency == Some(Idempotency::No) && entry.may_repeat_unsafe == Some(false) => {
            Some("the system repeats only what was not processed, or what is safe to repeat")
        }
        _ => None,
    }
}

/// Returns the time limit of a call with all its attempts.
pub(super) fn overall(entry: &Entry) -> Option<Duration> {
    entry.settings.timeout?.value.at()
}

/// Returns whether something limits the retries of all calls together.
pub(super) fn limits_retries(settings: &Settings) -> bool {
    matches!(settings.budget, Some(budget) if budget.value != RetryBudget::Unlimited)
}

/// Returns the time limit of an attempt. One that is only that of the whole call says nothing about attempts.
pub(super) fn attempt_timeout(entry: &Entry) -> Option<Duration> {
    let limit = entry.settings.attempt_timeout?;
    let Limit::At(length) = limit.value else { return None };
    if limit.is_stated() || overall(entry) != Some(length) { Some(length) } else { None }
}

/// Returns when the system has ended a call. A limit of nginx ends the series of attempts, and not the last of them.
fn ends_after(entry: &Entry) -> Option<Duration> {
    match entry.format {
        Format::Nginx => Some(overall(entry)?.saturating_add(attempt_timeout(entry)?)),
        _ => overall(entry),
    }
}
