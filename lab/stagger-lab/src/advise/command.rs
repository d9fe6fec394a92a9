use std::io::{self, IsTerminal};
use std::process::ExitCode;

use stagger_core::Seed;
use stagger_lint::advise::{Question, advise};
use stagger_sim::Progress;

use super::args::{AdviseArgs, answers};
use super::prompt::prompt;
use super::{html, json, report};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::target::Target;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::{command_line, print};
use stagger_terminal::plot::RenderOptions;

/// Returns the document of the advice for these answers, which have the names of the flags.
pub(crate) fn recommend(given: &[(Question, &str)], seed: u64, progress: &Progress) -> Result<String, CliError> {
    let answers = answers(given.iter().copied())?;
    json::document(&advise(&answers, Seed::new(seed), progress).map_err(CliError::usage)?, seed)
}

/// Runs `stagger advise`.
pub fn run(args: &AdviseArgs, term: &Term) -> Result<ExitCode, CliError> {
    let mut answers = args.answers()?;
    let target = args.output.as_deref().map(Target::open).transpose()?;
    let page_only = matches!(target, Some(Target::Stdout));
    if page_only && args.json {
        return Err(CliError::usage("--output - and --json both write to standard output; write the page to a file"));
    }
    let stdin = io::stdin();
    if !args.json && !args.no_input && stdin.is_terminal() && term.stderr.tty {
        answers = prompt(answers, &mut stdin.lock(), &mut io::stderr().lock())?;
    }
    let advice = advise(&answers, Seed::new(args.seed), &Progress::new()).map_err(CliError::usage)?;
    if let Some(target) = target {
        let document = json::document(&advice, args.seed)?;
        target.write(html::page(&advice, &document, args.seed, &command_line())?.as_bytes())?;
        if page_only {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let text = if args.json {
        json::document(&advice, args.seed)?
    } else {
        report::report(&advice, args.seed, RenderOptions::for_screen(&term.stdout, term))?
    };
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
