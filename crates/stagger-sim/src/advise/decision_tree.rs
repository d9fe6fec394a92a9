use core::time::Duration;

use stagger_core::text::Compact;

use super::search_space::SearchSpace;
use super::{Answers, Question, Reason, Recommendation, RecommendedGuards, Transience};
use crate::lint::{Idempotency, Purpose};

/// Below this a retry comes too late, and a second copy does not.
const TIGHT: Duration = Duration::from_millis(100);

impl Answers {
    /// The answers that end it: with them there is nothing to retry.
    pub(super) fn no_retry_reason(&self) -> Option<(Recommendation, Reason)> {
        let because =
            |recommendation, question, conclusion: &str| Some((recommendation, self.reason(question, conclusion)));
        if self.transience == Some(Transience::Permanent) {
            let conclusion = "it fails the same way every time; a rule tells such errors from those that go away";
            return because(Recommendation::DoNotRetry, Question::Transient, conclusion);
        }
        if self.context.idempotency == Some(Idempotency::No) {
            let conclusion = "a failure does not say whether it was carried out, and a retry would do it twice; send a key \
                             that is the same for all attempts, and it may be retried";
            return because(Recommendation::DoNotRetry, Question::Idempotent, conclusion);
        }
        let waited_for = !matches!(self.context.purpose, Some(Purpose::Background | Purpose::Reconnecting));
        if waited_for && self.context.deadline.is_some_and(|patience| patience < TIGHT) {
            let conclusion =
                "a retry would come too late: send a second copy of the slow request, and take the first answer";
            return because(Recommendation::Hedge, Question::Deadline, conclusion);
        }
        None
    }

    /// What bounds the retries of all calls together.
    pub(super) fn guards(&self) -> RecommendedGuards {
        match self.context.clients {
            Some(clients) if clients.get() > Self::MANY => RecommendedGuards::BudgetAndBreaker,
            _ => RecommendedGuards::None,
        }
    }

    /// Why the policy is as it is, in the order of the questions.
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
                None => "taken to go away by itself; what does not is not to be retried",
            },
            Question::Idempotent => match self.context.idempotency {
                Some(Idempotency::ByKey) => "send the same key with every attempt",
                Some(_) => "a retry does no harm",
                None => "taken to do no harm when carried out twice; what does is not to be retried",
            },
            Question::Purpose => space.rationale,
            Question::Clients => match self.context.clients.map(|clients| clients.get()) {
                Some(0..Self::SOME) => "so few cannot make a storm: jitter is optional, and does no harm",
                Some(Self::SOME..=Self::MANY) => "so many want jitter, drawn inside the cap",
                Some(_) => {
                    "so many want jitter, a budget for the retries of all calls together, and a breaker: \
                     backoff moves load and takes none away"
                }
                None => "not known, so nothing is computed; jitter does no harm to few either",
            },
            Question::Capacity => match self.context.clients.zip(self.context.capacity) {
                Some((clients, capacity)) => {
                    let seconds = clients.get() as f64 / capacity.get();
                    let window = Compact(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
                    return Some(format!("the server needs {window:.2} to take each of the clients once"));
                }
                None => "not known, so nothing is computed",
            },
            Question::Outage => match self.outage {
                Some(outage) if !outage.is_zero() => "clients that come while it is down come again",
                _ => "everyone is cut off, and the server is there again at once",
            },
            Question::Deadline => match (self.context.deadline?, space.is_long_lived()) {
                (_, true) => "the peak is kept as low as the clients are still back in time",
                (_, false) => "no attempt starts later: whoever asked has given up",
            },
            Question::MinDelay => {
                self.min_delay?;
                "no delay is drawn below it; the draw spans what is above"
            }
        };
        Some(text.to_owned())
    }
}
