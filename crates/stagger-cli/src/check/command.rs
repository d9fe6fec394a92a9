use std::process::ExitCode;

use super::args::CheckArgs;
use super::result::CheckResult;
use super::{json, report, rules};
use crate::output::error::CliError;
use crate::output::terminal::Term;
use crate::output::write::print;
use crate::plot::RenderOptions;

/// Runs `stagger check`.
pub(crate) fn run(args: &CheckArgs, term: &Term) -> Result<ExitCode, CliError> {
    let options = RenderOptions::for_screen(&term.stdout, term);
    if args.rules {
        let text = if args.json { rules::json()? } else { rules::text(options) };
        return print(text.as_bytes()).map(|()| ExitCode::SUCCESS);
    }
    if let Some(rule) = args.explain {
        return print(rules::explanation(rule, options).as_bytes()).map(|()| ExitCode::SUCCESS);
    }
    let checked = CheckResult::new(args)?;
    let text = if args.json { json::document(&checked)? } else { report::report(&checked, options) };
    print(text.as_bytes())?;
    Ok(if checked.findings().next().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
