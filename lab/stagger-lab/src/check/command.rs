//! The command: what is checked, and in which format the findings are written.

use std::process::ExitCode;

use stagger_report::output::Format;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::output::terminal::Term;
use stagger_terminal::output::write::{Target, command_line, print, say};
use stagger_terminal::plot::{Glyphs, RenderOptions};

use super::args::CheckArgs;
use super::baseline::Baseline;
use super::files::Detail;
use super::report::report;
use super::result::{CheckResult, LogResult};
use super::{TOO_FEW, json, outputs, rules, traces};

/// How lines of files are drawn for a page.
const PAGE: RenderOptions = RenderOptions { columns: 140, glyphs: Glyphs::Unicode, color: false };

/// Runs `stagger check`.
pub fn run(args: &CheckArgs, term: &Term) -> Result<ExitCode, CliError> {
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
    let target = args.output.as_deref().map(|path| Target::open_as("--output", "html", path)).transpose()?;
    if matches!(target, Some(Target::Stdout)) && (args.json || args.sarif || args.github || args.junit) {
        return Err(CliError::usage(
            "--output - and another output both write to standard output; write the page to a file",
        ));
    }
    let checked = CheckResult::new(args)?;
    if let Some(path) = &args.write_baseline {
        Baseline::of(checked.keys()).write(path)?;
        let count = checked.keys().count();
        say(&format!("wrote {count} finding{} to {}", if count == 1 { "" } else { "s" }, path_shown(path)));
        return Ok(ExitCode::SUCCESS);
    }
    let too_few = checked.log.as_ref().and_then(LogResult::too_few);
    let code = match too_few {
        _ if checked.findings().next().is_some() => ExitCode::FAILURE,
        Some(_) => ExitCode::from(TOO_FEW),
        None => ExitCode::SUCCESS,
    };
    if let Some(target) = target {
        let is_stdout = matches!(target, Target::Stdout);
        target.write(&report(&checked, Detail::Findings, PAGE)?.rendered(Format::Html, &command_line())?)?;
        if is_stdout {
            return Ok(code);
        }
    }
    let text = match args {
        _ if args.json => json::document(&checked)?,
        _ if args.sarif => outputs::log(&checked)?,
        _ if args.github => outputs::annotations(&checked),
        _ if args.junit => outputs::suites(&checked),
        _ => {
            let detail = if args.verbose { Detail::All } else { Detail::Findings };
            report(&checked, detail, options)?.text(options)
        }
    };
    print(text.as_bytes())?;
    Ok(code)
}
