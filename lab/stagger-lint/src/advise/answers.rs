use core::time::Duration;

use stagger_core::text::{Compact, ParseValueError, parse_count, parse_duration};

use crate::DeploymentContext;
use crate::context::{named, setters, word_of};

/// A question that the choice of a policy depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Question {
    /// Whether the error is transient.
    Transient,
    /// Whether executing the operation twice is safe.
    Idempotent,
    /// The purpose of the calls.
    Purpose,
    /// The number of clients that execute it at once, against one server.
    Clients,
    /// The capacity of that server.
    Capacity,
    /// The length of the outage.
    Outage,
    /// The maximum time until the operation has succeeded.
    Deadline,
    /// The minimum of each delay.
    MinDelay,
}

impl Question {
    /// All questions, in the order in which they are asked.
    pub const ALL: [Self; 8] = [
        Self::Transient,
        Self::Idempotent,
        Self::Purpose,
        Self::Clients,
        Self::Capacity,
        Self::Outage,
        Self::Deadline,
        Self::MinDelay,
    ];

    /// Returns the name in kebab-case, which is also the name of the flag: `min-delay`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name_and_text().0
    }

    /// Returns the text of the question, with the possible answers.
    #[must_use]
    pub const fn text(self) -> &'static str {
        self.name_and_text().1
    }

    const fn name_and_text(self) -> (&'static str, &'static str) {
        match self {
            Self::Transient => ("transient", "Is the error transient? (yes, no)"),
            Self::Idempotent => (
                "idempotent",
                "Is the operation idempotent? (yes, no; key: the server recognizes repetitions by an idempotency key)",
            ),
            Self::Purpose => (
                "for",
                "What is the purpose of the calls? (interactive: a user waits; serverless; background; \
                 reconnecting: a long-lived connection; near: a nearby API; far: a database, a remote service)",
            ),
            Self::Clients => {
                ("clients", "How many clients execute it at once, against one server? (a number, like 10k)")
            }
            Self::Capacity => ("capacity", "What is the capacity of that server? (like 500/s)"),
            Self::Outage => {
                ("outage", "How long is the server down? (like 5s; 0: it is available again at once; empty: 0s to 10m)")
            }
            Self::Deadline => ("deadline", "Within what time must the operation succeed? (like 30s)"),
            Self::MinDelay => ("min-delay", "What is the minimum delay between attempts? (like 100ms)"),
        }
    }
}

/// What is known about the use of a policy. Every answer is optional; missing answers are not guessed but make the
/// advice more general.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use]
pub struct Answers {
    /// Purpose, clients, capacity, idempotency and deadline.
    pub(super) context: DeploymentContext,
    pub(super) transience: Option<Transience>,
    pub(super) outage: Option<Duration>,
    pub(super) min_delay: Option<Duration>,
}

/// Whether an error is transient. Complete: it is or it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transience {
    /// The operation may succeed a little later.
    Transient,
    /// The operation fails every time, like a malformed request or a missing file.
    Permanent,
}

impl Answers {
    /// The number of clients from which on jitter is required.
    pub(super) const SOME: u64 = 10;

    /// The number of clients above which retries need a budget and a breaker.
    pub(super) const MANY: u64 = 1_000;

    /// Creates answers from a deployment context, of which purpose, clients, capacity, idempotency and deadline are
    /// used. The deadline is the maximum time from the first need for the operation until it has succeeded; for
    /// long-lived connections, from the end of the outage.
    pub fn from_context(context: DeploymentContext) -> Self {
        Self { context, ..Self::default() }
    }

    setters! {
        /// Sets whether the error is transient.
        transience: Transience = Some(transience);
        /// Sets how long the server is down; 0 means that all clients are disconnected, and the server is available at
        /// once. Not set means that the policy is chosen for several outages together, of 0 s to 10 minutes.
        outage: Duration = Some(outage);
        /// Sets the minimum of each delay.
        min_delay: Duration = Some(min_delay);
    }

    /// Sets an answer from text.
    ///
    /// # Errors
    /// Returns [`ParseValueError`], which names the expected values, if the text cannot be parsed.
    pub fn answer(self, question: Question, text: &str) -> Result<Self, ParseValueError> {
        let placed = |context| Self { context, ..self };
        Ok(match question {
            Question::Transient => self.transience(named(&TRANSIENCES, text, "yes or no")?),
            Question::Idempotent => placed(self.context.idempotency(text.parse()?)),
            Question::Purpose => placed(self.context.purpose(text.parse()?)),
            Question::Clients => placed(self.context.clients(parse_count(text)?)),
            Question::Capacity => placed(self.context.capacity(text.parse()?)),
            Question::Outage => self.outage(length(text)?),
            Question::Deadline => placed(self.context.deadline(length(text)?)),
            Question::MinDelay => self.min_delay(length(text)?),
        })
    }

    /// Returns the answer to a question as text; `None` if it was not given.
    #[must_use]
    pub fn answer_text(&self, question: Question) -> Option<String> {
        let length = |length: Option<Duration>| length.map(|length| Compact(length).to_string());
        match question {
            Question::Transient => self.transience.map(|transience| word_of(&TRANSIENCES, &transience).to_owned()),
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

const TRANSIENCES: [(&str, Transience); 2] = [("yes", Transience::Transient), ("no", Transience::Permanent)];

fn length(text: &str) -> Result<Duration, ParseValueError> {
    const KNOWN: &str = "a duration like 500ms, 30s or 5m";
    parse_duration(text).ok().flatten().ok_or_else(|| ParseValueError::new(text, KNOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_answer_round_trips() {
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
    fn the_error_for_an_invalid_answer_names_the_expected_values() {
        for question in Question::ALL {
            let error = Answers::default().answer(question, "perhaps").unwrap_err().to_string();
            assert!(error.starts_with("invalid value `perhaps`; expected "), "{error}");
        }
        assert!(Answers::default().answer(Question::Deadline, "inf").is_err(), "an infinite deadline is rejected");
    }
}
