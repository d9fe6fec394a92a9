use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output::error::CliError;

/// Print a shell completion script
#[derive(Args, Debug)]
#[command(after_help = "For bash: add `source <(stagger completions bash)` to ~/.bashrc.")]
pub(crate) struct CompletionsArgs {
    /// Shell to generate the script for
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, all: &Command) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut visible(all), "stagger", &mut script);
    crate::output::write::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the command line without hidden subcommands, which some scripts would offer as well.
fn visible(all: &Command) -> Command {
    Command::new("stagger")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(all.get_arguments().cloned())
        .subcommands(all.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}
