use super::{Answers, Transience};

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

    /// Returns whether an answer can still change the advice, given these answers.
    #[must_use]
    pub fn applies_to(self, answers: &Answers) -> bool {
        let open = answers.no_retry_reason().is_none();
        let simulable = open && answers.context.clients.is_some_and(|clients| clients.get() >= Answers::SOME);
        match self {
            Self::Transient => true,
            Self::Idempotent => answers.transience != Some(Transience::Permanent),
            Self::Purpose | Self::Clients | Self::Deadline | Self::MinDelay => open,
            Self::Capacity => simulable,
            Self::Outage => simulable && answers.context.capacity.is_some(),
        }
    }
}
