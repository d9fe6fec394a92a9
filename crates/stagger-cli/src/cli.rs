use std::ffi::OsStr;
use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::AnsiColor;
use clap::{CommandFactory, Parser, Subcommand};

use crate::error::{CliError, MISUSED, OWN_FAILURE};
use crate::term::{ColorChoice, Progress, Term};

/// Retries that don't stampede: exponential backoff and jitter
#[derive(Debug, Parser)]
#[command(name = "stagger", version, disable_help_subcommand = true, args_override_self = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// When to use color
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub(crate) color: ColorChoice,

    /// Draw no live line, also on a terminal
    #[arg(long, global = true)]
    no_progress: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<crate::run::RunArgs>),
    Plan(Box<crate::plan::PlanArgs>),
    Check(Box<crate::check::CheckArgs>),
    Simulate(Box<crate::simulate::SimulateArgs>),
    Drill(Box<crate::drill::DrillArgs>),
    #[command(hide = true)]
    DrillServer(crate::drill::ServeArgs),
    Advise(Box<crate::advise::AdviseArgs>),
    Completions(crate::completions::CompletionsArgs),
    Man(crate::man::ManArgs),
}

impl Cli {
    pub(crate) fn progress(&self) -> Progress {
        if self.no_progress { Progress::Hidden } else { Progress::Live }
    }
}

/// Says what is wrong with the command line, or shows the help that was asked for.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    // A reader that has gone has seen enough.
    let _ = error.print();
    let misused = if is_run(std::env::args_os().skip(1)) { OWN_FAILURE } else { MISUSED };
    if error.use_stderr() { ExitCode::from(misused) } else { ExitCode::SUCCESS }
}

/// Says why a command could not do its work.
pub(crate) fn fail(command: &Command, error: &CliError, term: &Term) -> ExitCode {
    let style = if term.stderr.color { AnsiColor::Red.on_default().bold() } else { anstyle::Style::new() };
    // Where nobody hears it, the exit code still tells.
    let _ = writeln!(io::stderr(), "{style}error:{style:#} {error}");
    ExitCode::from(match (command, error) {
        (Command::Run(_), _) | (_, CliError::Io { .. }) => OWN_FAILURE,
        (_, CliError::Usage(_)) => MISUSED,
    })
}

/// Whether `run` was meant by a command line that cannot be understood as a whole.
fn is_run(words: impl Iterator<Item = impl AsRef<OsStr>>) -> bool {
    let all = Cli::command();
    words.filter_map(|word| all.find_subcommand(word)).next().is_some_and(|command| command.get_name() == "run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_command_line_beyond_understanding_still_names_its_command() {
        for (words, want) in [
            (&["run", "--bogus"][..], true),
            (&["--color", "never", "retry", "plan"], true),
            (&["plan", "run"], false),
            (&["--bogus"], false),
            (&[], false),
        ] {
            assert_eq!(is_run(words.iter()), want, "{words:?}");
        }
    }
}
