use core::time::Duration;

use stagger_core::text::Compact;

use super::search_space::{SearchSpace, rationale};
use super::{Answers, Question, Transience};
use crate::{Idempotency, Purpose};

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

/// The deadline below which a retry comes too late, but a hedged request does not.
const TIGHT: Duration = Duration::from_millis(100);

impl Answers {
    /// Returns the recommendation and its reason if an answer rules out retries.
    pub(super) fn no_retry_reason(&self) -> Option<(Recommendation, Reason)> {
        let waited_for = !matches!(self.context.purpose, Some(Purpose::Background | Purpose::Reconnecting));
        let (recommendation, question, conclusion) = if self.transience == Some(Transience::Permanent) {
            let conclusion =
                "a permanent error fails every time; a predicate separates permanent from transient errors";
            (Recommendation::DoNotRetry, Question::Transient, conclusion)
        } else if self.context.idempotency == Some(Idempotency::No) {
            let conclusion = "a failure does not tell whether the operation was executed, and a retry could execute \
                              it twice; send an idempotency key that is the same for all attempts to make retries \
                              safe";
            (Recommendation::DoNotRetry, Question::Idempotent, conclusion)
        } else if waited_for && self.context.deadline.unwrap_or(Duration::MAX) < TIGHT {
            let conclusion =
                "a retry would come too late: send a second copy of the slow request and use the first answer";
            (Recommendation::Hedge, Question::Deadline, conclusion)
        } else {
            return None;
        };
        Some((recommendation, self.reason(question, conclusion)))
    }

    pub(super) fn reasons(&self, space: &SearchSpace) -> Vec<Reason> {
        Question::ALL
            .into_iter()
            .filter(|question| question.applies_to(self))
            .filter_map(|question| Some(self.reason(question, self.conclusion(question, space)?)))
            .collect()
    }

    fn reason(&self, question: Question, conclusion: impl Into<String>) -> Reason {
        Reason { question, answer: self.answer_text(question), conclusion: conclusion.into() }
    }

    fn conclusion(&self, question: Question, space: &SearchSpace) -> Option<String> {
        let text = match question {
            Question::Transient => match self.transience {
                Some(_) => "a retry can help",
                None => "assuming yes (permanent errors are not retried)",
            },
            Question::Idempotent => match self.context.idempotency {
                Some(Idempotency::ByKey) => "send the same idempotency key with every attempt",
                Some(_) => "a retry is safe",
                None => "assuming yes (operations that are not idempotent must not be retried)",
            },
            Question::Purpose => rationale(self.context.purpose),
            Question::Clients => match self.context.clients.map(|clients| clients.get()) {
                Some(0..Self::SOME) => "too few for a retry storm: jitter is optional and does no harm",
                Some(Self::SOME..=Self::MANY) => "jitter is required, drawn below the cap",
                Some(_) if space.is_long_lived() => {
                    "jitter and a spread are required; a budget in each process would not bind, because each client \
                     has one connection"
                }
                Some(_) if self.context.capacity.is_none() => {
                    "jitter is required; with the capacity, budgets and breakers are simulated too"
                }
                Some(_) => "jitter is required, and backoff shifts load in time but does not reduce it",
                None => "no policies are simulated; jitter does no harm to few clients either",
            },
            Question::Capacity => match self.context.min_recovery_time() {
                Some(window) => {
                    let window = Compact(window);
                    return Some(format!("the server needs {window:.2} to accept each client once"));
                }
                None => "no policies are simulated",
            },
            Question::Outage => match self.outage {
                Some(outage) if !outage.is_zero() => "clients that arrive while the server is down have to retry",
                _ => "all clients are disconnected, and the server is available again at once",
            },
            Question::Deadline => match (self.context.deadline?, space.is_long_lived()) {
                (_, true) => "any recovery within it after the outage will do, so that overload and attempts decide",
                (_, false) => "no attempt starts later, because the caller has given up by then",
            },
            Question::MinDelay => {
                self.min_delay?;
                "no delay is shorter; jitter is drawn above it"
            }
        };
        Some(text.to_owned())
    }
}

impl Question {
    /// Returns whether an answer can still change the advice, given these answers.
    #[must_use]
    pub fn applies_to(self, answers: &Answers) -> bool {
        let retries = answers.no_retry_reason().is_none();
        let simulates = match answers.context.clients {
            Some(clients) => retries && clients.get() >= Answers::SOME,
            None => false,
        };
        match self {
            Self::Transient => true,
            Self::Idempotent => answers.transience != Some(Transience::Permanent),
            Self::Purpose | Self::Clients | Self::Deadline | Self::MinDelay => retries,
            Self::Capacity => simulates,
            Self::Outage => simulates && answers.context.capacity.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use stagger_core::text::Rate;

    use super::*;
    use crate::DeploymentContext;

    #[test]
    fn questions_that_cannot_change_the_advice_do_not_apply() {
        let matter =
            |answers: &Answers| Question::ALL.into_iter().filter(|question| question.applies_to(answers)).count();
        let permanent = Answers::default().transience(Transience::Permanent);
        assert_eq!(matter(&permanent), 1, "only the first question applies");
        let few = DeploymentContext::default().clients(NonZeroU64::MIN);
        let many = DeploymentContext::default().clients(NonZeroU64::MAX);
        let known = many.capacity(Rate::per_second(1.0).unwrap());
        for (context, capacity, outage) in [(few, false, false), (many, true, false), (known, true, true)] {
            let answers = Answers::from_context(context);
            let applies = [Question::Capacity, Question::Outage, Question::Deadline].map(|it| it.applies_to(&answers));
            assert_eq!(applies, [capacity, outage, true], "{context:?}");
        }
    }
}
