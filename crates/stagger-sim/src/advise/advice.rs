use core::time::Duration;

use stagger_core::{Policy, Seed};

use super::arena::Arena;
use super::front::Wish;
use super::manner::Manner;
use super::search::{Limits, Search};
use super::{Answers, Front, Question};
use crate::{ScenarioError, Watch};

/// What to do, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    verdict: Verdict,
    reasons: Vec<Reason>,
    policy: Option<Policy>,
    guarding: Guarding,
    front: Option<Front>,
}

/// Whether to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// Retry, by the policy.
    Retry,
    /// Send a second copy of what is slow, and do not retry.
    Hedge,
    /// Do not retry.
    DoNotRetry,
}

/// What should bound the retries of all calls together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Guarding {
    /// The policy is enough.
    Nothing,
    /// A budget for retries, and a circuit breaker.
    BudgetAndBreaker,
}

/// An answer, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reason {
    /// The question.
    pub question: Question,
    /// The answer; `None` if it was not given, and what was assumed is in what follows.
    pub answer: Option<String>,
    /// What follows.
    pub therefore: String,
}

impl Advice {
    /// Whether to retry.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Which answers decided, in the order of the questions.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// The policy; `None` unless the verdict is to retry.
    #[must_use]
    pub const fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// What should bound the retries of all calls together.
    #[must_use]
    pub const fn guarding(&self) -> Guarding {
        self.guarding
    }

    /// What was computed; `None` unless it is known how many clients there are, ten or more, and what their server takes.
    #[must_use]
    pub const fn front(&self) -> Option<&Front> {
        self.front.as_ref()
    }
}

/// Goes through the answers, and computes what can be.
///
/// It takes a second or so where there is something to compute, on all cores. If the watch is cancelled before anything was
/// computed, the advice is that of the answers alone.
///
/// # Errors
/// [`ScenarioError`] if the fleet and its server are beyond what can be simulated: an outage of more than 76 hours, a rate
/// above a billion.
pub fn advise(answers: &Answers, seed: Seed, watch: &Watch) -> Result<Advice, ScenarioError> {
    if let Some((verdict, reason)) = answers.never() {
        let (reasons, guarding) = (vec![reason], Guarding::Nothing);
        return Ok(Advice { verdict, reasons, policy: None, guarding, front: None });
    }
    let manner = Manner::of(answers.place.purpose);
    let limits = Limits {
        least_wait: answers.least_wait.unwrap_or(Duration::ZERO),
        max_elapsed: answers.place.deadline.filter(|_| !manner.keeps_up()),
    };
    let front = front(answers, &manner, limits, seed, watch)?;
    let policy = match &front {
        Some(front) => front.best().policy,
        None => limits.apply(&manner.usual).unwrap_or(manner.usual),
    };
    let mut reasons = answers.reasons(&manner);
    let recovery = front.as_ref().map(|front| front.best().predicted.recovery.unwrap_or(Duration::MAX));
    if manner.keeps_up() && recovery > answers.place.deadline {
        reasons.iter_mut().filter(|reason| reason.question == Question::Patience).for_each(|reason| {
            reason.therefore =
                "nothing that was tried has the clients back in time; advised is what would be without it".into();
        });
    }
    Ok(Advice { verdict: Verdict::Retry, reasons, policy: Some(policy), guarding: answers.guarding(), front })
}

fn front(
    answers: &Answers,
    manner: &Manner,
    limits: Limits,
    seed: Seed,
    watch: &Watch,
) -> Result<Option<Front>, ScenarioError> {
    let many = answers.place.clients.filter(|clients| clients.get() >= Answers::SOME);
    let (Some(clients), Some(capacity)) = (many, answers.place.capacity) else { return Ok(None) };
    let (clients, capacity) = (clients.get(), capacity.get());
    let outage = answers.outage.unwrap_or(Duration::ZERO);
    let arena = Arena::new(clients, capacity, outage, seed)?;
    let search = Search {
        arena: &arena,
        manner,
        limits,
        window: arena.least_recovery.saturating_sub(outage),
        outage,
        wish: Wish { capacity, patience: answers.place.deadline },
    };
    Ok(search.run(watch))
}
