use core::time::Duration;

use stagger_core::text::{Compact, parse_duration};

use super::Question;
use crate::lint::{DeploymentContext, ParseValueError, parse_count};

/// What is known of the place where a policy is to be used, and of what befalls it. Everything is optional, and what is not
/// said is not guessed: the advice is then more general.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct Answers {
    /// Purpose, clients, capacity, idempotency, and as deadline the patience.
    pub(super) context: DeploymentContext,
    pub(super) transience: Option<Transience>,
    pub(super) outage: Option<Duration>,
    pub(super) min_delay: Option<Duration>,
}

/// Whether an error goes away by itself. Complete: it does or it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transience {
    /// It does: what failed may work a little later.
    Transient,
    /// It does not: a request that is malformed, a file that is not there.
    Permanent,
}

impl Answers {
    /// From so many clients on, jitter is no longer optional.
    pub(super) const SOME: u64 = 10;

    /// Above so many clients, retries want a budget and a breaker.
    pub(super) const MANY: u64 = 1_000;

    /// Where it is used: of this, purpose, clients, capacity, idempotency and deadline are asked for. The deadline is the
    /// patience there is: how long it may take until it has succeeded, from the moment at which it was first needed.
    pub fn from_context(context: DeploymentContext) -> Self {
        Self { context, ..Self::default() }
    }

    /// Whether the error goes away by itself.
    pub const fn transience(mut self, transience: Transience) -> Self {
        self.transience = Some(transience);
        self
    }

    /// How long the server is down. Not said is as good as 0: everyone is cut off, and it is there again at once.
    pub const fn outage(mut self, outage: Duration) -> Self {
        self.outage = Some(outage);
        self
    }

    /// How long each wait is at least.
    pub const fn min_delay(mut self, wait: Duration) -> Self {
        self.min_delay = Some(wait);
        self
    }

    /// The same with an answer in words, as people give it.
    ///
    /// # Errors
    /// [`ParseValueError`] if it is not understood; it says what would be.
    pub fn answer(self, question: Question, text: &str) -> Result<Self, ParseValueError> {
        let placed = |context| Self { context, ..self };
        Ok(match question {
            Question::Transient => self.transience(transience(text)?),
            Question::Idempotent => placed(self.context.idempotency(text.parse()?)),
            Question::Purpose => placed(self.context.purpose(text.parse()?)),
            Question::Clients => placed(self.context.clients(parse_count(text)?)),
            Question::Capacity => placed(self.context.capacity(text.parse()?)),
            Question::Outage => self.outage(length(text)?),
            Question::Deadline => placed(self.context.deadline(length(text)?)),
            Question::MinDelay => self.min_delay(length(text)?),
        })
    }

    /// The answer to a question in words; `None` if it was not given.
    #[must_use]
    pub fn answer_text(&self, question: Question) -> Option<String> {
        let length = |length: Option<Duration>| length.map(|length| Compact(length).to_string());
        match question {
            Question::Transient => self.transience.map(|transience| word(transience).to_owned()),
            Question::Idempotent => self.context.idempotency.map(|idempotency| idempotency.to_string()),
            Question::Purpose => self.context.purpose.map(|purpose| purpose.to_string()),
            Question::Clients => self.context.clients.map(|clients| clients.to_string()),
            Question::Capacity => self.context.capacity.map(|capacity| capacity.to_string()),
            Question::Outage => length(self.outage),
            Question::Deadline => length(self.context.deadline),
            Question::MinDelay => length(self.min_delay),
        }
    }
}

const fn word(transience: Transience) -> &'static str {
    match transience {
        Transience::Transient => "yes",
        Transience::Permanent => "no",
    }
}

fn transience(text: &str) -> Result<Transience, ParseValueError> {
    let known = [Transience::Transient, Transience::Permanent];
    known.into_iter().find(|known| word(*known) == text).ok_or_else(|| ParseValueError::new(text, "yes or no"))
}

fn length(text: &str) -> Result<Duration, ParseValueError> {
    const KNOWN: &str = "a length of time, like 500ms, 30s or 5m";
    parse_duration(text).ok().flatten().ok_or_else(|| ParseValueError::new(text, KNOWN))
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::*;

    #[test]
    fn an_answer_in_words_reads_back() {
        for (question, text) in [
            (Question::Transient, "yes"),
            (Question::Transient, "no"),
            (Question::Idempotent, "key"),
            (Question::Purpose, "background"),
            (Question::Clients, "10000"),
            (Question::Capacity, "500/s"),
            (Question::Outage, "0s"),
            (Question::Deadline, "1m30s"),
            (Question::MinDelay, "100ms"),
        ] {
            let answers = Answers::default().answer(question, text).unwrap();
            assert_eq!(answers.answer_text(question).as_deref(), Some(text));
            let others = Question::ALL.into_iter().filter(|other| *other != question);
            assert!(others.into_iter().all(|other| answers.answer_text(other).is_none()), "{question:?}");
        }
    }

    #[test]
    fn what_is_not_understood_says_what_would_be() {
        for question in Question::ALL {
            let error = Answers::default().answer(question, "perhaps").unwrap_err().to_string();
            assert!(error.starts_with("`perhaps` is not understood; use "), "{error}");
        }
        assert!(Answers::default().answer(Question::Deadline, "inf").is_err(), "patience without end is not said");
    }

    #[test]
    fn what_can_no_longer_change_anything_is_not_asked() {
        let matter =
            |answers: &Answers| Question::ALL.into_iter().filter(|question| question.applies_to(answers)).count();
        let permanent = Answers::default().transience(Transience::Permanent);
        assert_eq!(matter(&permanent), 1, "nothing but the question itself");
        let few = Answers::from_context(DeploymentContext::default().clients(NonZeroU64::MIN));
        assert!(!Question::Capacity.applies_to(&few) && Question::Deadline.applies_to(&few));
    }
}
