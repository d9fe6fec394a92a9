use clap::Args;
use stagger_sim::advise::{Answers, Question};

use crate::error::CliError;

/// Find the policy that suits, and say why
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
On a terminal it asks what is not said; an empty answer leaves it open. What is not known is not guessed.
With clients and capacity it computes, for everyone who loses the connection at once, the policies that nothing beats:
whatever brings the clients back sooner makes the peak higher.
Exit status: 0; 2 for a command line that makes no sense.")]
pub(crate) struct AdviseArgs {
    /// Whether the error goes away by itself
    #[arg(long, value_name = "yes|no", help_heading = "Questions")]
    transient: Option<String>,

    /// Whether the operation may be carried out twice: yes, no, or by a key that all attempts have in common
    #[arg(long, value_name = "yes|key|no", help_heading = "Questions")]
    idempotent: Option<String>,

    /// What it is for: interactive (a person waits), serverless (a function that is billed by its time), background (nobody
    /// waits), reconnecting (a connection that is kept up), near (an API close by), far (a database, a far service)
    #[arg(long = "for", value_name = "PURPOSE", help_heading = "Questions")]
    purpose: Option<String>,

    /// How many clients do it at once, against one server
    #[arg(long, value_name = "N", help_heading = "Questions")]
    clients: Option<String>,

    /// What that server takes: connections or requests, as in 500/s or 30/min
    #[arg(long, value_name = "RATE", help_heading = "Questions")]
    capacity: Option<String>,

    /// How long it is down; 0s: everyone is cut off, and it is there again at once
    #[arg(long, value_name = "DUR", help_heading = "Questions")]
    outage: Option<String>,

    /// How long it may take until it has succeeded
    #[arg(long, value_name = "DUR", help_heading = "Questions")]
    deadline: Option<String>,

    /// How long each wait is at least
    #[arg(long, value_name = "DUR", help_heading = "Questions")]
    min_delay: Option<String>,

    /// Ask nothing, also on a terminal
    #[arg(long)]
    pub(crate) no_ask: bool,

    /// Print the advice as JSON (schema stagger.advise/1); asks nothing
    #[arg(long)]
    pub(crate) json: bool,

    /// The seed of what is simulated
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

impl AdviseArgs {
    /// What the flags say.
    ///
    /// # Errors
    /// A value that cannot be understood.
    pub(super) fn answers(&self) -> Result<Answers, CliError> {
        let given = Question::ALL.into_iter().filter_map(|question| Some((question, self.flag(question)?)));
        given.into_iter().try_fold(Answers::default(), |known, (question, text)| {
            let flag = question.name();
            known.answer(question, text).map_err(|error| CliError::usage(format_args!("--{flag}: {error}")))
        })
    }

    fn flag(&self, question: Question) -> Option<&str> {
        match question {
            Question::Transient => self.transient.as_deref(),
            Question::Idempotent => self.idempotent.as_deref(),
            Question::Purpose => self.purpose.as_deref(),
            Question::Clients => self.clients.as_deref(),
            Question::Capacity => self.capacity.as_deref(),
            Question::Outage => self.outage.as_deref(),
            Question::Deadline => self.deadline.as_deref(),
            Question::MinDelay => self.min_delay.as_deref(),
            _ => None,
        }
    }
}
