use std::io::{self, IsTerminal};
use std::process::ExitCode;

use stagger_core::Seed;
use stagger_sim::Watch;
use stagger_sim::advise::advise;

use super::args::AdviseArgs;
use super::ask::ask;
use super::{json, report};
use crate::error::CliError;
use crate::output::print;
use crate::plot::RenderOptions;
use crate::term::Term;

/// `stagger advise`.
pub(crate) fn run(args: &AdviseArgs, term: &Term) -> Result<ExitCode, CliError> {
    let mut answers = args.answers()?;
    let stdin = io::stdin();
    if !args.json && !args.no_ask && stdin.is_terminal() && term.stderr.tty {
        answers = ask(answers, &mut stdin.lock(), &mut io::stderr().lock())?;
    }
    let advice = advise(&answers, Seed::new(args.seed), &Watch::new()).map_err(CliError::usage)?;
    let text = if args.json {
        json::document(&advice, args.seed)?
    } else {
        report::report(&advice, RenderOptions::for_screen(&term.stdout, term))?
    };
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
