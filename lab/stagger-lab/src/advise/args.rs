use std::path::PathBuf;

use clap::builder::StringValueParser;
use clap::{Args, ValueHint};
use stagger_lint::advise::{Answers, Question};

use crate::check::purposes;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::suggestion::offering;

/// Recommend a retry policy, and explain why
#[derive(Args, Clone, Debug)]
#[command(
    before_help = "\
Examples:
  stagger advise
  stagger advise --for reconnecting --clients 10k --capacity 500/s",
    after_help = "\
On a terminal, prompts for what is not given as a flag; press Enter to skip a question. The answer states \
what it assumes about an unspecified value. If the number of clients (ten or more) and the capacity are known, simulates a mass disconnect, and states what was searched. \
At last, random policies compete with the recommended one until none is better. Each listed policy is better than every other one in peak, recovery, attempts or recovered clients.

Exit status: 0 on success; 2 for a usage error; 125 if the page cannot be written."
)]
pub struct AdviseArgs {
    /// Whether the error is transient, so that a later attempt may succeed
    #[arg(long, value_name = "yes|no", help_heading = "Questions")]
    transient: Option<String>,

    /// Whether the operation is safe to repeat: yes, no, or key, if all attempts carry the same idempotency key
    #[arg(long, value_name = "yes|key|no", help_heading = "Questions")]
    idempotent: Option<String>,

    /// What the calls are for: interactive (a person waits), serverless (billed by duration), background (no one
    /// waits), reconnecting (a long-lived connection), near (a nearby API), far (a database or a distant service)
    #[arg(long = "for", value_name = "PURPOSE", help_heading = "Questions", hide_possible_values = true,
          value_parser = offering(StringValueParser::new(), purposes))]
    purpose: Option<String>,

    /// Number of clients that use the policy against one server
    #[arg(long, value_name = "N", help_heading = "Questions")]
    clients: Option<String>,

    /// Capacity of that server in connections or requests per second, such as 500/s or 30/min
    #[arg(long, value_name = "RATE", help_heading = "Questions")]
    capacity: Option<String>,

    /// Expected downtime of the server; 0s if clients lose their connections but the server stays available. Without
    /// it, the policy is chosen for downtimes of 0s, 5s, 30s, 2m and 10m together; for calls, and jobs with a deadline,
    /// for those of at most half of their time
    #[arg(long, value_name = "DUR", help_heading = "Questions")]
    outage: Option<String>,

    /// Time within which the operation must succeed; for long-lived connections, after the end of the outage
    #[arg(long, value_name = "DUR", help_heading = "Questions")]
    deadline: Option<String>,

    /// Minimum delay before each retry
    #[arg(long, value_name = "DUR", help_heading = "Questions")]
    min_delay: Option<String>,

    /// Never prompt, even on a terminal
    #[arg(long)]
    pub(crate) no_input: bool,

    /// Print the advice as JSON (schema stagger.advise/1); implies --no-input
    #[arg(long)]
    pub(crate) json: bool,

    /// Also write a self-contained HTML report to FILE; '-' is standard output
    #[arg(short, long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Seed of the simulation
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

impl AdviseArgs {
    /// Parses the answers given as flags.
    pub(super) fn answers(&self) -> Result<Answers, CliError> {
        let flags = [
            (Question::Transient, &self.transient),
            (Question::Idempotent, &self.idempotent),
            (Question::Purpose, &self.purpose),
            (Question::Clients, &self.clients),
            (Question::Capacity, &self.capacity),
            (Question::Outage, &self.outage),
            (Question::Deadline, &self.deadline),
            (Question::MinDelay, &self.min_delay),
        ];
        answers(flags.into_iter().filter_map(|(question, text)| Some((question, text.as_deref()?))))
    }
}

/// Parses the answers to these questions. An error names the flag of the question.
pub(super) fn answers<'a>(given: impl Iterator<Item = (Question, &'a str)>) -> Result<Answers, CliError> {
    given.into_iter().try_fold(Answers::default(), |known, (question, text)| {
        let flag = question.name();
        known.answer(question, text).map_err(|error| CliError::usage(format_args!("--{flag}: {error}")))
    })
}
