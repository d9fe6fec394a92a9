use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::policy_args::PolicyArgs;

/// Run a command, and run it again until it works
#[derive(Args, Debug)]
#[command(visible_alias = "retry", after_long_help = AFTER_HELP)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// End an attempt that runs longer than this: --signal to its process group, then after --kill-after SIGKILL
    #[arg(short, long, value_name = "DUR", help_heading = "Attempts")]
    pub(crate) timeout: Option<String>,

    /// How long a command that was told to end may take before it is killed; 'inf' never kills
    #[arg(short, long, value_name = "DUR", default_value = "5s", help_heading = "Attempts")]
    pub(crate) kill_after: String,

    /// What a command that has timed out is sent first
    #[arg(short, long, value_name = "SIGNAL", default_value = "TERM", help_heading = "Attempts")]
    pub(crate) signal: String,

    /// Keep the command in stagger's own process group, so that it may use the terminal although standard input is
    /// none; this is always so when standard input is a terminal
    #[arg(long, help_heading = "Attempts")]
    pub(crate) foreground: bool,

    /// Give the first word to /bin/sh as a script; the other words are its $1, $2, ...
    #[arg(long, help_heading = "Attempts")]
    pub(crate) shell: bool,

    /// Results that are worth another attempt: exit codes (1,7,52-56), fail, timeout, signal, SIGKILL, any; ! takes
    /// away (fail,!2) [default: fail,timeout,signal; with --until: any]
    #[arg(long, value_name = "SET", help_heading = "What is retried")]
    pub(crate) retry_on: Option<String>,

    /// Results that end the run at once, before --retry-on is asked. 126, 127, SIGINT and SIGQUIT always do, unless
    /// --retry-on names them
    #[arg(long, value_name = "SET", help_heading = "What is retried")]
    pub(crate) stop_on: Option<String>,

    /// The result that is wanted: success, fail, or a set; none runs the command for ever [default: success]
    #[arg(long, value_name = "SET", help_heading = "What is retried")]
    pub(crate) until: Option<String>,

    /// How often in a row --until must be reached; each time counts as an attempt
    #[arg(long, value_name = "N", default_value = "1", hide_default_value = true, help_heading = "What is retried")]
    pub(crate) consecutive: core::num::NonZeroU32,

    /// Retry a command that exited only if a line of its standard error matches; one that matches is retried even if
    /// it exited with 0. May be given several times
    #[arg(long, value_name = "REGEX", help_heading = "What is retried")]
    pub(crate) retry_if_stderr: Vec<String>,

    /// The same for standard output
    #[arg(long, value_name = "REGEX", help_heading = "What is retried")]
    pub(crate) retry_if_stdout: Vec<String>,

    /// Do not retry once a line of standard error matches
    #[arg(long, value_name = "REGEX", help_heading = "What is retried")]
    pub(crate) stop_if_stderr: Vec<String>,

    /// The same for standard output
    #[arg(long, value_name = "REGEX", help_heading = "What is retried")]
    pub(crate) stop_if_stdout: Vec<String>,

    /// Hold standard output back until the attempt ends: that of the successful attempt goes to standard output, that
    /// of the others to standard error
    #[arg(short = 'O', long, help_heading = "Streams")]
    pub(crate) hold_stdout: bool,

    /// Hold standard error back until the attempt ends
    #[arg(short = 'E', long, help_heading = "Streams")]
    pub(crate) hold_stderr: bool,

    /// What the command reads. auto: a file is rewound for each attempt, anything else inherited. replay: all of
    /// standard input is read before the first attempt, and each attempt gets it whole
    #[arg(long, value_enum, value_name = "HOW", default_value_t = StdinMode::Auto, hide_possible_values = true,
          help_heading = "Streams")]
    pub(crate) stdin: StdinMode,

    /// A line for /bin/sh, run after a failed attempt that will be retried; if it fails there is a warning
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString, help_heading = "Reporting")]
    pub(crate) on_retry: Option<OsString>,

    /// How attempts are told: to people, as one JSON object a line, or not at all
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Human, help_heading = "Reporting")]
    pub(crate) log: LogFormat,

    /// Append the log to this file instead of writing it to standard error
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Reporting")]
    pub(crate) log_file: Option<PathBuf>,

    /// The same as --log off; warnings are still written
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Reporting")]
    pub(crate) quiet: bool,

    /// Tell the policy, the seed, and each attempt that starts
    #[arg(short, long, help_heading = "Reporting")]
    pub(crate) verbose: bool,

    /// Write a JSON report of all attempts when the run ends; - is standard output
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, help_heading = "Reporting")]
    pub(crate) report: Option<PathBuf>,

    /// The command and its arguments, which are run as they are, without a shell
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", help_heading = None::<&str>,
          value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// Where the command's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StdinMode {
    /// A file is rewound for each attempt, anything else inherited
    Auto,
    /// Stagger's own, shared by all attempts
    Inherit,
    /// Read before the first attempt, whole for each
    Replay,
    /// Empty
    Null,
}

/// How attempts are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people: a live line on a terminal, key=value elsewhere
    Human,
    /// NDJSON, schema stagger.run/1
    Json,
    /// Nothing but warnings
    Off,
}

/// No line is longer than a manual page of 80 columns has room for.
const AFTER_HELP: &str = "\
Exit status:
  0        the command did what --until asks for
  its own  attempts or time were used up, or --stop-on ended the run:
           the code of the last attempt, or 1 if that was 0
  124      the last attempt ran into --timeout
  125      stagger itself failed or was misused
  126 127  the command cannot be run; there is no such command
  128+N    the command was killed by signal N
A signal that stagger gets is handed to the command's process group;
the run ends, and stagger dies of the same signal. A second one kills.

Environment of the command:
  STAGGER_ATTEMPT       the number of this attempt, from 1
  STAGGER_MAX_ATTEMPTS  how many there may be; inf without a limit
  STAGGER_LAST_EXIT     what the attempt before would have made stagger
                        exit with; not set for the first
  STAGGER_ELAPSED_MS    milliseconds since the run began
  STAGGER_ADVICE        a file into which the command may write
                        retry-after=30 (seconds; or 500ms, 2m), and the
                        next attempt comes no sooner; or stop, and
                        there is none

Output is streamed, so a reader of standard output sees what failed
attempts wrote too; --hold-stdout gives it the successful one only. On
a terminal a running attempt is shown live only where that cannot get
into the command's own output: with --hold-stderr, and --hold-stdout or
a redirected standard output.

Examples:
  stagger run -- curl -fsS https://example.com/health
  stagger run -n 8 -d 300ms -t 10s -- ./migrate.sh
  stagger run -O --retry-on 6,7,28 -- curl -fsS https://example.com
  stagger run -n inf -T 5m --until fail -- pgrep -x backup";
