use super::{Answers, Transience};

/// What a good policy depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Question {
    /// Whether the error goes away by itself.
    Transient,
    /// Whether the operation may be carried out twice.
    Idempotent,
    /// What it is for.
    Purpose,
    /// How many clients do it at once, against one server.
    Clients,
    /// What that server takes.
    Capacity,
    /// How long it is down.
    Outage,
    /// How long it may take until it has succeeded.
    Deadline,
    /// How long each wait is at least.
    MinDelay,
}

impl Question {
    /// All of them, in the order in which they are asked.
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

    /// Its name in kebab-case, which is also that of the flag: `min-delay`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Idempotent => "idempotent",
            Self::Purpose => "for",
            Self::Clients => "clients",
            Self::Capacity => "capacity",
            Self::Outage => "outage",
            Self::Deadline => "deadline",
            Self::MinDelay => "min-delay",
        }
    }

    /// The question, and what may be answered.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Transient => "Does the error go away by itself? (yes, no)",
            Self::Idempotent => {
                "May the operation be carried out twice? (yes, no; key: the server recognises repetitions)"
            }
            Self::Purpose => {
                "What is it for? (interactive: a person waits; serverless; background: nobody waits; \
                 reconnecting: a connection that is kept up; near: an API close by; far: a database, a far service)"
            }
            Self::Clients => "How many clients do it at once, against one server? (a number, like 10k)",
            Self::Capacity => "What does that server take? (like 500/s)",
            Self::Outage => "How long is it down? (like 5s; 0: it is there again at once)",
            Self::Deadline => "How long may it take until it has succeeded? (like 30s)",
            Self::MinDelay => "How long is each wait at least? (like 100ms)",
        }
    }

    /// Whether the answer can still change anything, after what has been answered.
    #[must_use]
    pub fn applies_to(self, answers: &Answers) -> bool {
        let ended = answers.no_retry_reason().is_some();
        let many = answers.context.clients.is_none_or(|clients| clients.get() >= Answers::SOME);
        match self {
            Self::Transient => true,
            Self::Idempotent => answers.transience != Some(Transience::Permanent),
            Self::Purpose | Self::Clients | Self::Deadline | Self::MinDelay => !ended,
            Self::Capacity => !ended && answers.context.clients.is_some() && many,
            Self::Outage => !ended && answers.context.clients.is_some() && many && answers.context.capacity.is_some(),
        }
    }
}
