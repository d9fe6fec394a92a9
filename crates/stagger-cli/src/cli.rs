pub(crate) mod packaging;

use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::AnsiColor;
use clap::{CommandFactory, Parser, Subcommand};

use crate::output::error::{CliError, RUN_FAILURE, USAGE_ERROR};
use crate::output::terminal::{ColorChoice, Progress, Term};

/// Retries that don't stampede: exponential backoff and jitter
#[derive(Debug, Parser)]
#[command(name = "stagger", version, disable_help_subcommand = true, args_override_self = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// When to use color
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,

    /// Do not draw the live status line, even on a terminal
    #[arg(long, global = true)]
    no_progress: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<crate::run::RunArgs>),
    Wait(Box<crate::wait::WaitArgs>),
    Plan(Box<crate::plan::PlanArgs>),
    Check(Box<crate::check::CheckArgs>),
    Simulate(Box<crate::simulate::SimulateArgs>),
    Drill(Box<crate::drill::DrillArgs>),
    #[command(hide = true)]
    DrillServer(crate::drill::ServeArgs),
    Advise(Box<crate::advise::AdviseArgs>),
    Completions(packaging::completions::CompletionsArgs),
    Man(packaging::man::ManArgs),
}

impl Cli {
    /// Returns whether a live status line may be drawn.
    pub(crate) fn progress(&self) -> Progress {
        if self.no_progress { Progress::Hidden } else { Progress::Live }
    }
}

/// Prints a usage error, or the requested help or version, and returns the exit code.
pub(crate) fn exit_with_usage(error: &clap::Error) -> ExitCode {
    // Not an error: the reader has closed the pipe.
    let _ = error.print();
    let code = if ends_with_a_command(std::env::args_os().skip(1)) { RUN_FAILURE } else { USAGE_ERROR };
    if error.use_stderr() { ExitCode::from(code) } else { ExitCode::SUCCESS }
}

/// Prints the error of a subcommand and returns the exit code.
pub(crate) fn fail(command: &Command, error: &CliError, term: &Term) -> ExitCode {
    let style = if term.stderr.color { AnsiColor::Red.on_default().bold() } else { anstyle::Style::new() };
    // If standard error is closed, the exit code still reports the failure.
    let _ = writeln!(io::stderr(), "{style}error:{style:#} {error}");
    ExitCode::from(match (command, error) {
        (Command::Run(_) | Command::Wait(_), _) | (_, CliError::Io { .. }) => RUN_FAILURE,
        (_, CliError::Usage(_)) => USAGE_ERROR,
    })
}

/// Returns whether the subcommand of a command line that could not be parsed passes on the exit status of a command.
fn ends_with_a_command(words: impl Iterator<Item = impl AsRef<OsStr>>) -> bool {
    let all = Cli::command();
    words
        .filter_map(|word| all.find_subcommand(word))
        .next()
        .is_some_and(|command| matches!(command.get_name(), "run" | "wait"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_passes_the_debug_asserts_of_clap() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_subcommand_of_an_unparsable_command_line_is_found() {
        for (words, want) in [
            (&["run", "--bogus"][..], true),
            (&["--color", "never", "retry", "plan"], true),
            (&["wait", "db"], true),
            (&["plan", "run"], false),
            (&["--bogus"], false),
            (&[], false),
        ] {
            assert_eq!(ends_with_a_command(words.iter()), want, "{words:?}");
        }
    }
}
