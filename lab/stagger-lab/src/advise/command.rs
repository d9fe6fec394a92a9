//! The command: answers come from flags or a prompt, and advice is written in one format.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::StringValueParser;
use clap::{Args, ValueHint};
use stagger_core::Seed;
use stagger_lint::advise::{Answers, Question, advise};
use stagger_report::output::Format;
use stagger_sim::Progress;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::suggestion::offering;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::{Target, command_line, print};
use stagger_terminal::plot::RenderOptions;

use super::json;
use super::report::report;
use crate::check::purposes;

/// Recommend a retry policy, and explain why
#[derive(Args, Clone, Debug)]
#[command(
    before_help = "\
Examples:
  stagger advise
  stagger advise --for reconnecting --clients 10k --capacity 500/s",
    after_help = "\
On a terminal, prompts for what is not given as a flag; press Enter to skip a question. The answer states \
what it assumes about an unspecified value. If the number of clients (ten or more) and the capacity are known, \
simulates a mass disconnect, and states what was searched. At last, random policies compete with the recommended one \
until none is better. Each listed policy is better than every other one in peak, recovery, attempts or recovered \
clients.

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
    /// for those of at most half of their time. Judged as well: downtimes between these and up to a quarter beyond
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

/// Returns the document of the advice for these answers, which have the names of the flags.
pub(crate) fn recommend(given: &[(Question, &str)], seed: u64, progress: &Progress) -> Result<String, CliError> {
    let answers = answers(given.iter().copied())?;
    json::document(&advise(&answers, Seed::new(seed), progress).map_err(CliError::usage)?, seed)
}

/// Runs `stagger advise`.
pub fn run(args: &AdviseArgs, term: &Term) -> Result<ExitCode, CliError> {
    let mut answers = args.answers()?;
    let target = args.output.as_deref().map(|path| Target::open_as("--output", "html", path)).transpose()?;
    let page_only = matches!(target, Some(Target::Stdout));
    if page_only && args.json {
        return Err(CliError::usage("--output - and --json both write to standard output; write the page to a file"));
    }
    let stdin = io::stdin();
    if !args.json && !args.no_input && stdin.is_terminal() && term.stderr.tty {
        answers = prompt(answers, &mut stdin.lock(), &mut io::stderr().lock())?;
    }
    let advice = advise(&answers, Seed::new(args.seed), &Progress::new()).map_err(CliError::usage)?;
    let report = report(&advice, args.seed)?;
    if let Some(target) = target {
        target.write(&report.rendered(Format::Html, &command_line())?)?;
        if page_only {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let options = RenderOptions::for_screen(&term.stdout, term);
    print(if args.json { report.document } else { report.text(options) }.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Prompts for each value that is missing and can still change the result. An empty line skips a question; the end of
/// the input skips the remaining ones.
fn prompt(known: Answers, input: &mut impl BufRead, out: &mut impl Write) -> Result<Answers, CliError> {
    prompt_until_done(known, input, out)
        .map_err(|error| CliError::io("cannot prompt; give the values as flags, with --no-input", error))
}

fn prompt_until_done(mut known: Answers, input: &mut impl BufRead, out: &mut impl Write) -> io::Result<Answers> {
    for question in Question::ALL {
        // An earlier answer may have made the question irrelevant.
        while question.applies_to(&known) && known.answer_text(question).is_none() {
            write!(out, "{} ", question.text())?;
            out.flush()?;
            let mut line = String::new();
            if input.read_line(&mut line)? == 0 {
                writeln!(out)?;
                return Ok(known);
            }
            if line.trim().is_empty() {
                break;
            }
            match known.answer(question, line.trim()) {
                Ok(answered) => known = answered,
                Err(error) => writeln!(out, "{error}")?,
            }
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the answers and the prompts that were written.
    fn prompt_until_done(answers: &str) -> (Answers, String) {
        let mut out = Vec::new();
        let known = prompt(Answers::default(), &mut answers.as_bytes(), &mut out).unwrap();
        (known, String::from_utf8(out).unwrap())
    }

    #[test]
    fn an_empty_line_skips_the_question() {
        let (known, prompts) = prompt_until_done("yes\n\nfar\n");
        assert_eq!(
            known,
            Answers::default().answer(Question::Transient, "yes").unwrap().answer(Question::Purpose, "far").unwrap()
        );
        assert!(
            prompts.contains(Question::Idempotent.text()) && prompts.ends_with("(a number, like 10k) \n"),
            "{prompts}"
        );
    }

    #[test]
    fn an_invalid_answer_repeats_the_question() {
        let (known, prompts) = prompt_until_done("maybe\nno\n");
        assert_eq!(known.answer_text(Question::Transient).as_deref(), Some("no"));
        assert!(prompts.contains("invalid value `maybe`; expected yes or no\nIs the error"), "{prompts}");
    }

    #[test]
    fn a_decisive_answer_ends_the_prompts() {
        let (_, prompts) = prompt_until_done("no\nyes\nfar\n");
        assert_eq!(prompts, format!("{} ", Question::Transient.text()));
    }
}
