use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::AnsiColor;
use clap::error::ErrorKind;
use clap::{ArgAction, Args, FromArgMatches, Subcommand};
use stagger_terminal::output::error::{CliError, RUN_FAILURE, USAGE_ERROR};
use stagger_terminal::output::outside::in_lines;
use stagger_terminal::output::suggestion;
use stagger_terminal::output::terminal::{ColorChoice, Progress, Term};

use crate::summary::{LENGTH, shortened, summarized, takes_length, without_long_help};

/// A command line.
#[derive(Debug)]
pub(crate) struct Cli {
    pub(crate) command: Command,
    pub(crate) global: GlobalArgs,
}

/// Retries that don't stampede: exponential backoff and jitter
#[derive(Args, Debug)]
pub(crate) struct GlobalArgs {
    /// When to use color: auto, always or never. auto is on a terminal, unless NO_COLOR, CLICOLOR=0 or TERM=dumb is
    /// set; CLICOLOR_FORCE=1 makes it always
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto,
          hide_possible_values = true, help_heading = GLOBAL)]
    pub(crate) color: ColorChoice,

    /// Do not draw the live status line, even on a terminal
    #[arg(long, global = true, help_heading = GLOBAL)]
    no_progress: bool,

    /// Print help, with -h a summary, with --help-all everything
    #[arg(short, long, global = true, action = ArgAction::Help, help_heading = GLOBAL)]
    help: Option<bool>,

    /// Print help with everything
    #[arg(long, global = true, action = ArgAction::HelpLong, hide = true, help_heading = GLOBAL)]
    help_all: Option<bool>,

    /// Print version
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = GLOBAL)]
    version: Option<bool>,
}

/// The heading of the flags that every subcommand has; clap lists it last.
const GLOBAL: &str = "Global options";

const EXAMPLES: &str = "\
Examples:
  stagger run -n 8 -t 10s -- ./migrate.sh
  stagger plan -p aws-sdk
  stagger check -n 8 -d 100ms --rps 2k/s --layers 2";

/// The task first, then how to do it; `all-args` ends with the global options.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<crate::run::RunArgs>),
    Wait(Box<crate::wait::WaitArgs>),
    Plan(Box<PlanCommand>),
    #[cfg(feature = "lab")]
    Check(Box<stagger_lab::check::CheckArgs>),
    #[cfg(feature = "lab")]
    Simulate(Box<stagger_lab::simulate::SimulateArgs>),
    #[cfg(feature = "lab")]
    Drill(Box<stagger_drill::DrillArgs>),
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    DrillServer(stagger_drill::ServeArgs),
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    DrillGuard(stagger_drill::GuardArgs),
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    DrillOutageServer(stagger_drill::OutageServeArgs),
    #[cfg(feature = "lab")]
    Advise(Box<stagger_lab::advise::AdviseArgs>),
    #[cfg(feature = "lab")]
    Serve(stagger_lab::serve::ServeArgs),
    Control(crate::control::ControlArgs),
    Completions(crate::completions::CompletionsArgs),
    Man(crate::man::ManArgs),
    Help(crate::help::HelpArgs),
}

/// Show the delays of a policy as a table and a plot
// The first line of the help: of several flattened structs, the last would give it.
#[derive(Args, Debug)]
pub(crate) struct PlanCommand {
    #[command(flatten)]
    pub(crate) plan: crate::plan::PlanArgs,
    #[cfg(feature = "lab")]
    #[command(flatten)]
    pub(crate) files: stagger_lab::plan::FileArgs,
}

impl Cli {
    /// Parses a command line, whose first word is the program. An error is a usage error, or the requested help or
    /// version.
    pub(crate) fn parse(words: &[OsString]) -> Result<Self, clap::Error> {
        // The description of all subcommands takes half of the time that `stagger run` adds to a command. It is needed
        // for what is not a correct line of this subcommand alone.
        if let Some(mut command) = words.get(1).and_then(|word| command_of(word))
            && let Ok(cli) = Self::parse_as(&mut command, words)
        {
            return Ok(cli);
        }
        let mut all = command();
        let error = match Self::parse_as(&mut all, words) {
            Ok(cli) => return Ok(cli),
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::DisplayHelp if asks_for_a_summary(words) => Self::parse_as(&mut summarized(command()), words),
            ErrorKind::DisplayHelp if !words.iter().any(|word| word == "--help-all") => {
                Self::parse_as(&mut shortened(command()), words)
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Self::parse_as(&mut summarized(command()), words),
            _ => match renamed(words) {
                Some(line) => {
                    Err(all.error(ErrorKind::InvalidSubcommand, format_args!("name the scenario; use: {line}")))
                }
                None => Err(suggestion::corrected(error.format(&mut all), &all, words)),
            },
        }
    }

    fn parse_as(command: &mut clap::Command, words: &[OsString]) -> Result<Self, clap::Error> {
        let matches = command.try_get_matches_from_mut(words)?;
        Ok(Self { command: Command::from_arg_matches(&matches)?, global: GlobalArgs::from_arg_matches(&matches)? })
    }
}

impl GlobalArgs {
    /// Returns whether a live status line may be drawn.
    pub(crate) fn progress(&self) -> Progress {
        if self.no_progress { Progress::Hidden } else { Progress::Live }
    }
}

/// Returns the description of the command line.
pub(crate) fn command() -> clap::Command {
    finished(Command::augment_subcommands(root()))
}

/// Returns the description of the command line with nothing but the subcommand of this name, if other programs wait for
/// it to start.
fn command_of(name: &OsStr) -> Option<clap::Command> {
    let name = name.to_str()?;
    let command = match name {
        "run" | "retry" => crate::run::RunArgs::augment_args(clap::Command::new("run")),
        "wait" => crate::wait::WaitArgs::augment_args(clap::Command::new("wait")),
        _ => return None,
    };
    Some(finished(root().subcommand(command)))
}

fn root() -> clap::Command {
    GlobalArgs::augment_args(clap::Command::new("stagger"))
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args_override_self(true)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(100)
        .before_help(EXAMPLES)
}

/// Returns how a command line of `simulate` is written now, if it is one of earlier versions.
fn renamed(words: &[OsString]) -> Option<String> {
    match words {
        #[cfg(feature = "lab")]
        [_, command, rest @ ..] if command == "simulate" => stagger_lab::simulate::renamed(rest),
        _ => None,
    }
}

/// Adds what all subcommands have in common.
fn finished(command: clap::Command) -> clap::Command {
    command.help_template(TEMPLATE).mut_subcommands(|command| {
        // A number below 0 is a value that is out of range, not a flag that does not exist.
        finished(explained(command).mut_args(|arg| {
            let is_number =
                arg.get_value_names().is_some_and(|names| names.iter().any(|name| NUMBERS.contains(&&**name)));
            arg.allow_hyphen_values(is_number)
        }))
    })
}

/// Says what a length of time is, at the end of a help that names one.
fn explained(command: clap::Command) -> clap::Command {
    if !command.get_arguments().any(takes_length) {
        return command;
    }
    let after = |text: &clap::builder::StyledStr| format!("{text}\n\n{LENGTH}");
    match (command.get_after_help().map(after), command.get_after_long_help().map(after)) {
        (_, Some(long)) => command.after_long_help(long),
        (Some(text), None) => command.after_help(text),
        (None, None) => command.after_help(LENGTH),
    }
}

/// Returns whether a command line that asks for help does so with `-h`.
fn asks_for_a_summary(words: &[OsString]) -> bool {
    let asked = without_long_help(command()).try_get_matches_from(words);
    asked.is_err_and(|error| error.kind() == ErrorKind::DisplayHelp)
}

/// The names of values that are numbers. A flag that is taken for one is not a number either, so it is reported.
const NUMBERS: [&str; 6] = ["DUR", "N", "N|inf", "X", "RATE", "KIND"];

/// Prints a usage error, or the requested help or version, and returns the exit code. The first of these words is the
/// program.
pub(crate) fn exit_with_usage(error: &clap::Error, words: &[OsString]) -> ExitCode {
    // Not an error: the reader has closed the pipe.
    let _ = error.print();
    let code = if ends_with_a_command(words.iter().skip(1)) { RUN_FAILURE } else { USAGE_ERROR };
    if error.use_stderr() { ExitCode::from(code) } else { ExitCode::SUCCESS }
}

/// Prints the error of a subcommand and returns the exit code.
pub(crate) fn fail(command: &Command, error: &CliError, term: &Term) -> ExitCode {
    let style = if term.stderr.color { AnsiColor::Red.on_default().bold() } else { anstyle::Style::new() };
    // If standard error is closed, the exit code still reports the failure.
    let _ = writeln!(io::stderr(), "{style}error:{style:#} {}", in_lines(&error.to_string()));
    ExitCode::from(match (command, error) {
        (Command::Run(_) | Command::Wait(_), _) | (_, CliError::Io { .. }) => RUN_FAILURE,
        (_, CliError::Usage(_)) => USAGE_ERROR,
    })
}

/// Returns whether the subcommand of a command line that could not be parsed passes on the exit status of a command.
/// The subcommand is the first word that is no option; what follows it does not count.
fn ends_with_a_command(words: impl Iterator<Item = impl AsRef<OsStr>>) -> bool {
    let mut words = words;
    while let Some(word) = words.next() {
        match word.as_ref().to_str() {
            // The only option of stagger itself that has a value.
            Some("--color") => drop(words.next()),
            Some("--") => return false,
            Some(option) if option.starts_with('-') => {}
            name => return matches!(name, Some("run" | "retry" | "wait")),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_passes_the_debug_asserts_of_clap() {
        command().debug_assert();
    }

    /// Such as `--log: for humans, JSON lines, or none`, where the word is `off`.
    #[test]
    fn help_offers_no_word_that_its_flag_refuses() {
        const WORDS: [&str; 7] = ["none", "off", "never", "no", "inf", "all", "auto"];
        let mut checked = 0;
        let mut commands = vec![command()];
        while let Some(command) = commands.pop() {
            for argument in command.get_arguments() {
                let values = argument.get_possible_values();
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default().to_lowercase();
                if values.is_empty() || !argument.get_action().takes_values() {
                    continue;
                }
                checked += 1;
                let offers = |word: &str| {
                    let rest = help.split(&format!(" or {word}")).nth(1);
                    rest.is_some_and(|rest| !rest.starts_with(|after: char| after.is_alphanumeric()))
                };
                for word in WORDS.into_iter().filter(|word| offers(word)) {
                    assert!(values.iter().any(|value| value.matches(word, true)), "{}: {help}", argument.get_id());
                }
            }
            commands.extend(command.get_subcommands().cloned());
        }
        assert!(checked > 10, "{checked} flags have a list of words");
    }

    #[test]
    fn a_subcommand_that_is_described_alone_is_parsed_as_among_all() {
        for line in [
            "stagger run true",
            "stagger retry -n 3 -d 1s --color never -- plan wait",
            "stagger run --no-progress -p aws-sdk -- make",
            "stagger wait db:5432 --timeout 3s -- ./server",
            "stagger wait --help",
            "stagger run --bogus",
            "stagger run -d -1s true",
            "stagger wait",
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let mut alone = command_of(&words[1]).unwrap();
            let parsed = |command: &mut clap::Command| match Cli::parse_as(command, &words) {
                Ok(cli) => format!("{cli:?}"),
                Err(error) => error.kind().to_string(),
            };
            assert_eq!(parsed(&mut alone), parsed(&mut command()), "{line}");
        }
        for other in ["plan", "--color", "--help", "rum", ""] {
            assert!(command_of(OsStr::new(other)).is_none(), "{other}");
        }
    }

    #[test]
    fn the_subcommand_of_an_unparsable_command_line_is_found() {
        for (words, want) in [
            (&["run", "--bogus"][..], true),
            (&["--color", "never", "retry", "plan"], true),
            (&["wait", "db"], true),
            (&["--bogus", "run", "true"], true),
            (&["--no-progress", "--color=never", "wait"], true),
            (&["plan", "run"], false),
            (&["rnu", "run"], false),
            (&["--color", "run", "plan"], false),
            (&["--color", "run"], false),
            (&["--", "run"], false),
            (&["help", "run"], false),
            (&["--bogus"], false),
            (&[], false),
        ] {
            assert_eq!(ends_with_a_command(words.iter()), want, "{words:?}");
        }
    }
}
