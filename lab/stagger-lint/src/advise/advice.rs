use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};

use super::evaluator::Evaluator;
use super::guard_trial::{GuardTrial, Tried, try_guards};
use super::lengths::judged;
use super::pareto_front::Objective;
use super::search::{Limits, Search, Warned};
use super::search_space::SearchSpace;
use super::{Answers, ParetoFront, Question, Reason, Recommendation};
use crate::{Budgeted, DeploymentContext, Finding, Severity, check};
use stagger_sim::Progress;
use stagger_sim::ScenarioError;
use stagger_sim::outage::DefaultGuards;
use stagger_sim::reconnect::FirstAttempt;

/// A recommendation, with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    recommendation: Recommendation,
    reasons: Vec<Reason>,
    policy: Option<Policy>,
    trial: Option<GuardTrial>,
    front: Option<ParetoFront>,
    warnings: Vec<Finding>,
}

impl Advice {
    /// Returns whether to retry.
    #[must_use]
    pub const fn recommendation(&self) -> Recommendation {
        self.recommendation
    }

    /// Returns the answers that determined the recommendation, in the order of the questions.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// Returns the policy; `None` unless the recommendation is to retry.
    #[must_use]
    pub const fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// Returns the guards that should limit the retries of all calls of a process together.
    #[must_use]
    pub fn guards(&self) -> DefaultGuards {
        self.trial.map_or(DefaultGuards::None, |trial| trial.guards)
    }

    /// Returns an outage under steady traffic, which begins later than the calls, and which the guards were chosen by;
    /// `None` unless there is a [`front`](Self::front). Guards are tried for more than 1,000 clients. Long-lived
    /// connections have neither, because a process with one connection never exhausts a guard.
    #[must_use]
    pub const fn guard_trial(&self) -> Option<&GuardTrial> {
        self.trial.as_ref()
    }

    /// Returns the evaluated policies; `None` unless the capacity and the number of clients are known, and there are at
    /// least ten clients.
    #[must_use]
    pub const fn front(&self) -> Option<&ParetoFront> {
        self.front.as_ref()
    }

    /// Returns what [`check`] warns of in this policy with these guards, told the same facts. Empty unless there is no
    /// policy without a warning, or nothing could be simulated.
    #[must_use]
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }
}

/// Recommends a policy for these answers.
///
/// If there is something to simulate, it takes some seconds on all cores. If it is cancelled before any policy was
/// evaluated, the advice is based on the answers alone.
///
/// # Errors
/// Returns [`ScenarioError`] if the fleet and its server cannot be simulated: an outage of more than 76 hours, a rate
/// above a billion.
pub fn advise(answers: &Answers, seed: Seed, progress: &Progress) -> Result<Advice, ScenarioError> {
    if let Some((recommendation, reason)) = answers.no_retry_reason() {
        let reasons = vec![reason];
        return Ok(Advice { recommendation, reasons, policy: None, trial: None, front: None, warnings: Vec::new() });
    }
    let space = SearchSpace::for_purpose(answers.context.purpose);
    let limits = Limits {
        min_delay: answers.min_delay.unwrap_or(Duration::ZERO),
        max_elapsed: time_of_call(answers, &space),
        patience: if answers.context.deadline.is_some() { None } else { space.patience },
    };
    let front = front(answers, &space, limits, seed, progress)?;
    let policy = match &front {
        Some(front) => front.best().policy,
        None => limits.apply(&space.default_policy).unwrap_or(space.default_policy),
    };
    let mut reasons = answers.reasons(&space);
    let warnings = |guards: Option<Budgeted>| warnings(&policy, facts(answers, &space, guards));
    let trial = match (fleet(answers), &front) {
        (Some((clients, capacity)), Some(front)) if !space.is_long_lived() => {
            let longest = asked(answers, &space).into_iter().max().unwrap_or_default();
            let tried = match warnings(None).len() > warnings(Some(Budgeted::Yes)).len() {
                _ if clients <= Answers::MANY => Tried::None,
                true => Tried::NoWorse,
                false => Tried::Better,
            };
            try_guards(clients, capacity, &front.best().policy, longest, tried, seed, progress)?
        }
        _ => None,
    };
    if let Some(front) = &front {
        amend(&mut reasons, answers, &space, front);
    }
    let guards = trial.map(|trial| trial.guards).filter(|guards| *guards != DefaultGuards::None);
    let warnings = warnings(guards.map(Budgeted::With));
    Ok(Advice { recommendation: Recommendation::Retry, reasons, policy: Some(policy), trial, front, warnings })
}

/// Returns the time that a call or job has, if its deadline is known. That of a connection begins with the end of the
/// outage.
fn time_of_call(answers: &Answers, space: &SearchSpace) -> Option<Duration> {
    if space.is_long_lived() { None } else { answers.context.deadline }
}

/// The share of served calls below which the advice says that no policy serves them all.
const ALL: f64 = 0.995;

/// The mean first delay from which on the advice says what a single failure costs.
const LONG: Duration = Duration::from_secs(1);

/// Adds what only the simulation shows to the reasons.
fn amend(reasons: &mut [Reason], answers: &Answers, space: &SearchSpace, front: &ParetoFront) {
    let mut conclude = |question, conclusion: &dyn Fn(&str) -> String| {
        for reason in reasons.iter_mut().filter(|reason| reason.question == question) {
            reason.conclusion = conclusion(&reason.conclusion);
        }
    };
    let predicted = front.best().predicted;
    if space.is_long_lived()
        && predicted.recovery.unwrap_or(Duration::MAX) > answers.context.deadline.unwrap_or(Duration::MAX)
    {
        conclude(Question::Deadline, &|_| {
            "no evaluated policy recovers in time; this is the recommendation without a deadline".into()
        });
    }
    conclude(Question::Outage, &|known| match answers.outage {
        Some(_) if front.outages.len() > 1 => format!("{known}; {}", judged_text(front)),
        Some(_) => known.to_owned(),
        None => outages_text(&asked(answers, space), space, front),
    });
    let policy = &front.best().policy;
    let (subject, delay) = match (space.is_call(), space.is_long_lived()) {
        (true, _) => ("a call that fails alone", policy.mean(1)),
        (_, true) => ("a connection that is lost alone", Some(policy.spread() / 2)),
        _ => ("a job that starts alone", Some(policy.spread() / 2)),
    };
    match delay {
        Some(delay) if delay >= LONG => conclude(Question::Clients, &|known| {
            let delay = Compact(delay);
            format!("{known}; {subject} waits {delay:.1} on average, too, because it cannot know that it is alone")
        }),
        _ => {}
    }
    if !space.is_long_lived() && predicted.recovered_ratio < ALL {
        let served = 100.0 * front.candidates.iter().map(|it| it.predicted.recovered_ratio).fold(0.0, f64::max);
        let subject = match (fits_in_time(answers, space, front), space.is_call()) {
            (true, true) => "no call policy of those searched",
            (false, true) => "no call policy",
            (true, false) => "no policy of those searched",
            (false, false) => "no policy",
        };
        conclude(Question::Capacity, &|known| {
            format!(
                "{known}; {subject} serves them all in time, and those simulated serve at most {served:.1}%: add \
                 capacity, reject early, or queue the work"
            )
        });
    }
}

/// Returns whether the server could accept all calls in the time that a call has.
fn fits_in_time(answers: &Answers, space: &SearchSpace, front: &ParetoFront) -> bool {
    // The server's backlog may hold the last of them for another second, which is added to the limit.
    let Some(limit) = answers.context.deadline.or(space.patience) else { return true };
    let longest = front.outages.iter().max().copied().unwrap_or_default();
    longest.saturating_add(front.min_recovery_time) <= limit.saturating_add(Duration::from_secs(1))
}

/// Returns which other outages than those asked for the policies were judged on.
fn judged_text(front: &ParetoFront) -> String {
    let longest = front.outages.iter().max().copied().unwrap_or_default();
    format!(
        "judged on others up to {} too, and just after the attempts of each policy; the figures are the worst of them, \
         and the mean number of attempts",
        Compact(longest)
    )
}

/// Returns which outages were simulated because none was given.
fn outages_text(outages: &[Duration], space: &SearchSpace, front: &ParetoFront) -> String {
    let list: Vec<_> = outages.iter().map(|outage| Compact(*outage).to_string()).collect();
    let subject = if space.is_call() { "call" } else { "job" };
    let mut text = match &list[..] {
        [one] => format!("simulated an outage of {one}"),
        all => format!("simulated outages of {}; {}", all.join(", "), judged_text(front)),
    };
    if list.len() < USUAL_OUTAGES.len() {
        text.push_str(&format!("; a {subject} that gives up in time does not outlast longer ones"));
    }
    text
}

/// The outages to be prepared for if none is given.
const USUAL_OUTAGES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
];

/// Returns the outages to be prepared for. Of the usual ones, a call or job that is given up earlier is simulated only
/// in those that leave half of its time.
fn asked(answers: &Answers, space: &SearchSpace) -> Vec<Duration> {
    if let Some(outage) = answers.outage {
        return vec![outage];
    }
    let mut outages = USUAL_OUTAGES.to_vec();
    match answers.context.deadline.or(space.patience) {
        Some(patience) if !space.is_long_lived() => outages.retain(|outage| *outage <= patience / 2),
        _ => {}
    }
    outages
}

/// Returns the number of clients and the capacity per second, if both are known.
fn fleet(answers: &Answers) -> Option<(u64, f64)> {
    Some((answers.context.clients?.get(), answers.context.capacity?.get()))
}

/// Returns the facts that `check` is told, with these guards. A connection's deadline begins with the end of the
/// outage, that of a call with its start, which is the one that `check` knows.
fn facts(answers: &Answers, space: &SearchSpace, budget: Option<Budgeted>) -> DeploymentContext {
    let DeploymentContext { purpose, clients, capacity, idempotency, .. } = answers.context;
    let deadline = time_of_call(answers, space);
    DeploymentContext { purpose, clients, capacity, idempotency, deadline, budget, ..DeploymentContext::default() }
}

/// Returns what `check` warns of.
fn warnings(policy: &Policy, facts: DeploymentContext) -> Vec<Finding> {
    let mut found = check(policy, &facts);
    found.retain(|finding| finding.rule().severity() == Severity::Warning);
    found
}

fn front(
    answers: &Answers,
    space: &SearchSpace,
    limits: Limits,
    seed: Seed,
    progress: &Progress,
) -> Result<Option<ParetoFront>, ScenarioError> {
    let Some((clients, capacity)) = fleet(answers) else { return Ok(None) };
    if clients < Answers::SOME {
        return Ok(None);
    }
    // A connection waits before its first attempt, a call does not.
    let first_attempt = if space.is_long_lived() { FirstAttempt::AfterDelay } else { FirstAttempt::Immediate };
    let asked = asked(answers, space);
    let longest = asked.iter().max().copied().unwrap_or_default();
    // Of a longer outage, hardly any call is served by any policy.
    let time = answers.context.deadline.or(space.patience).filter(|_| !space.is_long_lived());
    let accepts = Duration::try_from_secs_f64(clients as f64 / capacity).unwrap_or(Duration::MAX);
    let limit = time.map_or(Duration::MAX, |time| time.saturating_sub(accepts / 2));
    let evaluator = Evaluator::new(clients, capacity, &asked, judged(&asked, limit), first_attempt, seed)?;
    let search = Search {
        evaluator: &evaluator,
        space,
        ranges: &space.ranges(evaluator.acceptance_time, longest, limits.max_elapsed, limits.min_delay),
        limits,
        context: facts(answers, space, Some(Budgeted::Yes)),
        objective: Objective { capacity, deadline: answers.context.deadline.filter(|_| space.is_long_lived()) },
        seed: seed.for_call(u64::MAX),
        warned: Warned::Out,
    };
    Ok(search.run(progress))
}
