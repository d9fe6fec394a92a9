use std::io::{self, IsTerminal};
use std::process::ExitCode;

use stagger_core::Seed;
use stagger_sim::Progress;
use stagger_sim::advise::advise;

use super::args::AdviseArgs;
use super::prompt::prompt;
use super::{json, report};
use crate::output::error::CliError;
use crate::output::terminal::Term;
use crate::output::write::print;
use crate::plot::RenderOptions;

/// Runs `stagger advise`.
pub(crate) fn run(args: &AdviseArgs, term: &Term) -> Result<ExitCode, CliError> {
    let mut answers = args.answers()?;
    let stdin = io::stdin();
    if !args.json && !args.no_input && stdin.is_terminal() && term.stderr.tty {
        answers = prompt(answers, &mut stdin.lock(), &mut io::stderr().lock())?;
    }
    let advice = advise(&answers, Seed::new(args.seed), &Progress::new()).map_err(CliError::usage)?;
    let text = if args.json {
        json::document(&advice, args.seed)?
    } else {
        report::report(&advice, args.seed, RenderOptions::for_screen(&term.stdout, term))?
    };
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
