use core::time::Duration;

use stagger_core::{Policy, Seed};

use super::evaluator::Evaluator;
use super::pareto_front::Objective;
use super::search::{Limits, Search};
use super::search_space::SearchSpace;
use super::{Answers, ParetoFront, Question};
use crate::engine::progress::Progress;
use crate::scenario::error::ScenarioError;

/// A recommendation, with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    recommendation: Recommendation,
    reasons: Vec<Reason>,
    policy: Option<Policy>,
    guards: RecommendedGuards,
    front: Option<ParetoFront>,
}

/// Whether to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Recommendation {
    /// Retry with the policy.
    Retry,
    /// Do not retry; hedge: send a second copy of a slow request.
    Hedge,
    /// Do not retry.
    DoNotRetry,
}

/// The guards that should limit the retries of all calls together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecommendedGuards {
    /// No guards; the policy is sufficient.
    None,
    /// A retry budget and a circuit breaker.
    BudgetAndBreaker,
}

/// An answer, and the conclusion drawn from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reason {
    /// The question.
    pub question: Question,
    /// The answer; `None` if it was not given. The conclusion then states the assumption.
    pub answer: Option<String>,
    /// The conclusion.
    pub conclusion: String,
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

    /// Returns the guards that should limit the retries of all calls together.
    #[must_use]
    pub const fn guards(&self) -> RecommendedGuards {
        self.guards
    }

    /// Returns the evaluated policies; `None` unless the capacity and the number of clients are known, and there are at
    /// least ten clients.
    #[must_use]
    pub const fn front(&self) -> Option<&ParetoFront> {
        self.front.as_ref()
    }
}

/// Recommends a policy for these answers.
///
/// If there is something to simulate, it takes about a second on all cores. If it is cancelled before any policy was
/// evaluated, the advice is based on the answers alone.
///
/// # Errors
/// Returns [`ScenarioError`] if the fleet and its server cannot be simulated: an outage of more than 76 hours, a rate
/// above a billion.
pub fn advise(answers: &Answers, seed: Seed, progress: &Progress) -> Result<Advice, ScenarioError> {
    if let Some((recommendation, reason)) = answers.no_retry_reason() {
        let (reasons, guards) = (vec![reason], RecommendedGuards::None);
        return Ok(Advice { recommendation, reasons, policy: None, guards, front: None });
    }
    let space = SearchSpace::for_purpose(answers.context.purpose);
    let limits = Limits {
        min_delay: answers.min_delay.unwrap_or(Duration::ZERO),
        max_elapsed: answers.context.deadline.filter(|_| !space.is_long_lived()),
    };
    let front = front(answers, &space, limits, seed, progress)?;
    let policy = match &front {
        Some(front) => front.best().policy,
        None => limits.apply(&space.default_policy).unwrap_or(space.default_policy),
    };
    let mut reasons = answers.reasons(&space);
    let recovery = front.as_ref().map(|front| front.best().predicted.recovery.unwrap_or(Duration::MAX));
    if space.is_long_lived() && recovery > answers.context.deadline {
        reasons.iter_mut().filter(|reason| reason.question == Question::Deadline).for_each(|reason| {
            reason.conclusion =
                "no evaluated policy recovers in time; this is the recommendation without a deadline".into();
        });
    }
    Ok(Advice { recommendation: Recommendation::Retry, reasons, policy: Some(policy), guards: answers.guards(), front })
}

fn front(
    answers: &Answers,
    space: &SearchSpace,
    limits: Limits,
    seed: Seed,
    progress: &Progress,
) -> Result<Option<ParetoFront>, ScenarioError> {
    let known = answers.context.clients.zip(answers.context.capacity);
    let known = known.map(|(clients, capacity)| (clients.get(), capacity.get()));
    let Some((clients, capacity)) = known.filter(|(clients, _)| *clients >= Answers::SOME) else { return Ok(None) };
    let outage = answers.outage.unwrap_or(Duration::ZERO);
    let evaluator = Evaluator::new(clients, capacity, outage, seed)?;
    let search = Search {
        evaluator: &evaluator,
        space,
        limits,
        acceptance_time: evaluator.min_recovery_time.saturating_sub(outage),
        outage,
        objective: Objective { capacity, deadline: answers.context.deadline },
    };
    Ok(search.run(progress))
}
