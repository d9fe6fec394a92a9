use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::error::CliError;

/// Print a script that completes stagger's command line in a shell
#[derive(Args, Debug)]
#[command(after_help = "For bash: add `source <(stagger completions bash)` to ~/.bashrc.")]
pub(crate) struct CompletionsArgs {
    /// The shell that it is for
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// `stagger completions`.
pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut visible(&Cli::command()), "stagger", &mut script);
    crate::output::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// What people type: some scripts would offer hidden commands, too.
fn visible(all: &Command) -> Command {
    Command::new("stagger")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(all.get_arguments().cloned())
        .subcommands(all.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}
