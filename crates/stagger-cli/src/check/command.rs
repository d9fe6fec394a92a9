use std::process::ExitCode;

use super::args::CheckArgs;
use super::baseline::Baseline;
use super::result::CheckResult;
use super::{json, outputs, report, rules, traces};
use crate::output::error::CliError;
use crate::output::terminal::Term;
use crate::output::write::{print, say};
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
    if !args.traces.is_empty() {
        return traces::run(&args.traces, args.json, term);
    }
    let checked = CheckResult::new(args)?;
    if let Some(path) = &args.write_baseline {
        Baseline::of(checked.keys()).write(path)?;
        let count = checked.keys().count();
        say(&format!("wrote {count} finding{} to {}", if count == 1 { "" } else { "s" }, path.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let text = match args {
        _ if args.json => json::document(&checked)?,
        _ if args.sarif => outputs::log(&checked)?,
        _ if args.github => outputs::annotations(&checked),
        _ if args.junit => outputs::suites(&checked),
        _ => report::report(&checked, options),
    };
    print(text.as_bytes())?;
    Ok(if checked.findings().next().is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
