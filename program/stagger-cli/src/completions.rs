use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;
use stagger_terminal::output::error::CliError;
#[cfg(feature = "lab")]
use stagger_terminal::policy_args::policies;

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
    // What the generator leaves out; zsh lacks nothing.
    match args.shell {
        Shell::Bash => script.extend_from_slice(BASH.as_bytes()),
        Shell::Fish => {
            script.extend_from_slice(FISH.as_bytes());
            #[cfg(feature = "lab")]
            script.extend_from_slice(
                format!(
                    "complete -c stagger -n '__fish_seen_subcommand_from check' -f -a '{}'\n",
                    policies().join(" ")
                )
                .as_bytes(),
            );
        }
        _ => {}
    }
    stagger_terminal::output::write::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Completes the command after `run --` as if it stood alone, and removes the names of arguments, which are no words to
/// type.
const BASH: &str = r#"
_stagger_or_command() {
    local i runs=0
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "${COMP_WORDS[i]}" in
            run | retry)
                runs=1
                ;;
            --)
                ((runs)) || break
                if declare -F _comp_command_offset >/dev/null; then
                    _comp_command_offset $((i + 1))
                elif declare -F _command_offset >/dev/null; then
                    _command_offset $((i + 1))
                elif ((COMP_CWORD == i + 1)); then
                    COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
                fi
                return 0
                ;;
        esac
    done
    _stagger "$@"
    local word kept=()
    for word in "${COMPREPLY[@]}"; do
        [[ $word == [\<\[]* ]] || kept+=("$word")
    done
    COMPREPLY=("${kept[@]}")
}
if ((BASH_VERSINFO[0] > 4 || (BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 4))); then
    complete -F _stagger_or_command -o nosort -o bashdefault -o default stagger
else
    complete -F _stagger_or_command -o bashdefault -o default stagger
fi
"#;

/// Completes the command after `run --` as if it stood alone.
const FISH: &str = r#"
function __stagger_has_command
    set -l words (commandline -opc)
    contains -- -- $words; and begin
        contains run $words; or contains retry $words
    end
end
function __stagger_complete_command
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    set -l rest $words[(math $at + 1)..-1]
    set -q words[(math $at + 1)]; or set rest
    complete -C (string join ' ' -- (string escape -- $rest) (commandline -ct))
end
complete -c stagger -n __stagger_has_command -x -a '(__stagger_complete_command)'
"#;

/// Returns the command line without hidden subcommands, which some scripts would offer as well.
fn visible(all: &Command) -> Command {
    Command::new("stagger")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(all.get_arguments().cloned())
        .subcommands(all.get_subcommands().filter(|command| !command.is_hide_set()).cloned())
}
