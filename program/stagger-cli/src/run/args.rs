use core::num::{NonZeroU32, NonZeroU64};
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::StringValueParser;
use clap::{Args, ValueEnum, ValueHint};
use stagger_core::text::{Rate, parse_count};
use stagger_terminal::output::suggestion::offering;
use stagger_terminal::policy_args::{PolicyArgs, at_least_one};

use super::budget::BudgetPlace;

/// Run a command and retry it until it succeeds
#[derive(Args, Debug)]
#[command(visible_alias = "retry", before_help = EXAMPLES, after_long_help = AFTER_HELP,
          override_usage = "stagger run [OPTIONS] [--] <COMMAND>...")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// Time limit for each attempt. When it expires, the command's process group is sent --signal and, after
    /// --kill-after, SIGKILL [default: none]
    #[arg(short, long, value_name = "DUR", help_heading = "Attempts")]
    pub(crate) timeout: Option<String>,

    /// Time limit for the whole run. When it expires during an attempt, the attempt is ended as by --timeout; a retry
    /// that would start later ends the run immediately. Either way, the exit code is 124 [default: none]
    #[arg(long, alias = "deadline", value_name = "DUR", help_heading = "Attempts")]
    pub(crate) time_limit: Option<String>,

    /// Time to wait after --signal before sending SIGKILL; 'inf' to never send it
    #[arg(short, long, value_name = "DUR", default_value = "5s", help_heading = "Attempts")]
    pub(crate) kill_after: String,

    /// Signal sent to a command that has timed out
    #[arg(short, long, value_name = "SIGNAL", default_value = "TERM", help_heading = "Attempts",
          hide_possible_values = true, value_parser = offering(StringValueParser::new(), signals))]
    pub(crate) signal: String,

    /// Run the command in stagger's own process group, so that it can use the terminal even though standard input is
    /// not a terminal. This is the default if standard input is a terminal
    #[arg(long, help_heading = "Attempts")]
    pub(crate) foreground: bool,

    /// Do not end the processes that a failed attempt leaves in the background. Without this flag they are sent
    /// --signal and, after --kill-after, SIGKILL, as at a timeout; those of a successful attempt are always kept
    #[arg(long, help_heading = "Attempts")]
    pub(crate) keep_background: bool,

    /// Run the first argument as a /bin/sh script; the remaining arguments are its $1, $2, ...
    #[arg(long, help_heading = "Attempts")]
    pub(crate) shell: bool,

    /// Outcomes to retry: exit codes (1,7,52-56), fail, timeout, signal, SIGKILL, any; prefix with ! to exclude
    /// (fail,!2) [default: fail,timeout,signal; with --until: any]
    #[arg(long, value_name = "SET", help_heading = "Retry conditions", hide_possible_values = true,
          value_parser = offering(StringValueParser::new(), outcomes))]
    pub(crate) retry_on: Option<String>,

    /// Outcomes that end the run immediately; takes precedence over --retry-on. 126, 127, SIGINT and SIGQUIT always
    /// end it, unless --retry-on lists them explicitly [default: none]
    #[arg(long, value_name = "SET", help_heading = "Retry conditions", hide_possible_values = true,
          value_parser = offering(StringValueParser::new(), outcomes))]
    pub(crate) stop_on: Option<String>,

    /// Outcome to wait for: success, fail, or a set as in --retry-on; 'none' to repeat the command forever
    /// [default: success]
    #[arg(long, value_name = "SET", help_heading = "Retry conditions", hide_possible_values = true,
          value_parser = offering(StringValueParser::new(), outcomes))]
    pub(crate) until: Option<String>,

    /// Number of consecutive attempts that must end with the --until outcome; each counts towards --max-attempts
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one, help_heading = "Retry conditions")]
    pub(crate) consecutive: NonZeroU32,

    /// For attempts that were neither killed nor timed out, retry only if a line of standard error matches; a match is
    /// retried even after exit code 0. The stream of the command is then a pipe: the command sees no terminal on it,
    /// and its lines may arrive before or after those of the other stream. Repeatable
    #[arg(long, value_name = "REGEX", help_heading = "Retry conditions")]
    pub(crate) retry_if_stderr: Vec<String>,

    /// Like --retry-if-stderr, for standard output. Repeatable
    #[arg(long, value_name = "REGEX", help_heading = "Retry conditions")]
    pub(crate) retry_if_stdout: Vec<String>,

    /// Do not retry if a line of standard error matches. Repeatable
    #[arg(long, value_name = "REGEX", help_heading = "Retry conditions")]
    pub(crate) stop_if_stderr: Vec<String>,

    /// Do not retry if a line of standard output matches. Repeatable
    #[arg(long, value_name = "REGEX", help_heading = "Retry conditions")]
    pub(crate) stop_if_stdout: Vec<String>,

    /// The command is curl or wget: retry by the status of the response, when the server says (Retry-After and others),
    /// and only what is safe to repeat. A POST is repeated only if it was never sent or carries an Idempotency-Key. A
    /// failed status is a failure, with exit code 22, even if the client succeeds
    #[arg(long, conflicts_with = "shell", help_heading = "Retry conditions")]
    pub(crate) http: bool,

    /// A response with 403 or 413 that says when to return (Retry-After), or with 403 that nothing of a rate limit
    /// remains (X-RateLimit-Remaining: 0), is a rate limit and is retried. For APIs such as GitHub's; with --http, or
    /// where the headers are in $STAGGER_ADVICE
    #[arg(long, help_heading = "Retry conditions")]
    pub(crate) announced_waits: bool,

    /// With --http: the request may be sent more than once, although its method does not say so
    #[arg(long, requires = "http", help_heading = "Retry conditions")]
    pub(crate) idempotent: bool,

    /// Buffer standard output until the attempt ends. The output of the successful attempt goes to standard output;
    /// that of failed attempts goes to standard error
    #[arg(short = 'O', long, help_heading = "Streams")]
    pub(crate) hold_stdout: bool,

    /// Buffer standard error until the attempt ends
    #[arg(short = 'E', long, help_heading = "Streams")]
    pub(crate) hold_stderr: bool,

    /// Standard input of each attempt. auto: rewind a file, inherit anything else. inherit: share stagger's own.
    /// replay: read all input before the first attempt and give each attempt a full copy. null: empty
    #[arg(long, value_enum, value_name = "HOW", default_value_t = StdinMode::Auto, hide_possible_values = true,
          help_heading = "Streams")]
    pub(crate) stdin: StdinMode,

    /// In a command that another `stagger run` retries. stand-down: make one attempt and leave the retries to the outer
    /// run, so that they do not multiply. allow: retry as well. Runs without a limit of attempts, or with
    /// --stable-after, --until or --consecutive, neither stand down nor make nested ones do so
    #[arg(long, value_enum, value_name = "HOW", default_value_t = NestedMode::StandDown, hide_possible_values = true,
          help_heading = "Retry conditions")]
    pub(crate) nested: NestedMode,

    /// Retry budget that runs share. A retry takes one from it, a success returns one; when it is used up, a failed
    /// attempt ends the run with the command's exit code. NAME is for the runs of this user on this machine which name
    /// it: a file in $XDG_RUNTIME_DIR/stagger, or else in the directory stagger-UID of temporary files; if it cannot be
    /// used, the run goes on without it, with a warning. redis://HOST/NAME (rediss:// with TLS, and with a database
    /// redis://HOST/0/NAME) is for runs on any machine; if it does not answer, the run has its share of the refill, with
    /// a warning
    #[arg(long, value_name = "NAME", value_parser = BudgetPlace::parse, help_heading = "Budget")]
    pub(crate) budget: Option<BudgetPlace>,

    /// Number of runs at the same time that use the budget in Redis: without Redis, each has that part of its
    /// refill
    #[arg(long, value_name = "N", value_parser = at_least_one, requires = "budget", help_heading = "Budget")]
    pub(crate) budget_processes: Option<NonZeroU32>,

    /// Number of retries of a full budget. That of the latest run is in force
    #[arg(long, value_name = "N", default_value = "100", value_parser = at_least_one, requires = "budget",
          help_heading = "Budget")]
    pub(crate) budget_size: NonZeroU32,

    /// Rate at which retries return to the budget with time, like 10/min; without it, only successes return them
    #[arg(long, value_name = "RATE", requires = "budget", help_heading = "Budget")]
    pub(crate) budget_refill: Option<Rate>,

    /// Maximum length of standard input that --stdin replay copies, in bytes, like 500k, 20M or 4G; 'inf' for no limit
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size, help_heading = "Streams")]
    pub(crate) stdin_limit: u64,

    /// Shell command to run with /bin/sh between a failed attempt and its retry. It may run as long as an attempt: for
    /// --timeout, and until the end of --time-limit; without either, it has no limit. If it fails, a warning is logged
    #[arg(long, value_name = "CMD", value_hint = ValueHint::CommandString, help_heading = "Reporting")]
    pub(crate) on_retry: Option<OsString>,

    /// Log format: for humans, JSON lines, or off
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Human, help_heading = "Reporting")]
    pub(crate) log: LogFormat,

    /// Append the log to this file instead of writing it to standard error
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Reporting")]
    pub(crate) log_file: Option<PathBuf>,

    /// Same as --log off: only warnings are written
    #[arg(short, long, conflicts_with_all = ["verbose", "log"], help_heading = "Reporting")]
    pub(crate) quiet: bool,

    /// Also log the policy, the seed and the start of each attempt
    #[arg(short, long, help_heading = "Reporting")]
    pub(crate) verbose: bool,

    /// Write a JSON report of all attempts to FILE when the run ends; '-' for standard output
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, help_heading = "Reporting")]
    pub(crate) report: Option<PathBuf>,

    /// Command and its arguments, run directly, without a shell
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", help_heading = None::<&str>,
          value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// Returns names of outcomes for completions.
fn outcomes() -> Vec<&'static str> {
    vec!["success", "fail", "timeout", "signal", "any", "none", "SIGABRT", "SIGHUP", "SIGKILL", "SIGSEGV", "SIGTERM"]
}

/// Returns names of signals for completions.
fn signals() -> Vec<&'static str> {
    vec!["TERM", "INT", "HUP", "QUIT", "KILL", "USR1", "USR2"]
}

/// The source of the command's standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StdinMode {
    /// Rewind a file for each attempt, inherit anything else
    Auto,
    /// Share stagger's own standard input among all attempts
    Inherit,
    /// Read all input before the first attempt and give each attempt a full copy
    Replay,
    /// Empty input
    Null,
}

/// What a run does in a command that another run retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NestedMode {
    /// Make one attempt
    StandDown,
    /// Retry as well
    Allow,
}

/// Parses a number of bytes; `inf` is the largest.
fn size(text: &str) -> Result<u64, String> {
    if text == "inf" {
        return Ok(u64::MAX);
    }
    let size = match text.strip_suffix('G') {
        Some(number) => parse_count(&format!("{number}M")).map(|size| size.get().saturating_mul(1_000)),
        None => parse_count(text).map(NonZeroU64::get),
    };
    size.map_err(|_| "expected a number of bytes like 500k, 20M or 4G, or inf".to_owned())
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For humans: a live status line on a terminal, key=value elsewhere
    Human,
    /// JSON lines, schema stagger.run/1
    Json,
    /// Only warnings
    Off,
}

/// Lines fit a manual page of 80 columns.
const EXAMPLES: &str = "\
Examples:
  stagger run --http -- curl -fsS https://example.com/health
  stagger run -n 8 -d 300ms -t 10s -- ./migrate.sh
  # Pass on only the output of the attempt that succeeds
  json=$(stagger run --http -O -- curl -fsS https://example.com/data)
  # Wait while a command prints pending
  stagger run -n inf -T 10m --retry-if-stdout pending -- ./status
  # Wait until a process has ended
  stagger run -n inf -T 5m --until fail -- pgrep -x backup";

/// Lines fit a manual page of 80 columns.
const AFTER_HELP: &str = "\
Exit status:
  0        the --until outcome was reached
  other    attempts or time ran out, or --stop-on ended the run:
           exit code of the last attempt, or 1 if that was 0
  124      the last attempt timed out (--timeout), or the run did
           (--time-limit)
  125      usage error, or stagger itself failed
  126      the command cannot be executed
  127      the command was not found
  128+N    the command was killed by signal N
A signal that ends the run (HUP, INT, QUIT, TERM, ALRM) is forwarded to
the command; stagger then ends by the same signal, or, as PID 1 of a
container, with 128+N. A second one kills the command.

A timeout and a signal end all descendants of the command: its process
group and, on Linux, also those in sessions of their own (setsid) and
daemons. What a failed attempt leaves in the background ends before the
next one; see --keep-background. As PID 1, stagger reaps all orphans.
SIGKILL cannot be handled: if stagger is killed, the command runs on.

Environment of the command:
  STAGGER_ATTEMPT       number of this attempt, from 1
  STAGGER_MAX_ATTEMPTS  maximum number of attempts, or inf
  STAGGER_LAST_EXIT     exit code of the previous attempt, as stagger
                        would report it; unset for the first
  STAGGER_ELAPSED_MS    milliseconds since the run started
  STAGGER_RETRIED_BY    PID of the run that retries the command; in it, a
                        nested `stagger run` stands down (--nested). Not
                        passed on by sudo, ssh and containers
  STAGGER_ADVICE        path of a file for instructions to stagger:
                        retry-after=30 (seconds; or 500ms, 2m) sets a
                        minimum delay before the next attempt; stop
                        prevents it. Headers of HTTP responses are read
                        as with --http (curl -D $STAGGER_ADVICE): if the
                        command fails, the last status decides whether
                        it is retried, unless --retry-on, --until or
                        --retry-if does

Output is streamed, so a reader of standard output also receives the
output of failed attempts; --hold-stdout passes on only that of the
successful one. On a terminal, the live status line of a running attempt
is shown only if it cannot mix with the command's own output: with
--hold-stderr, and --hold-stdout or a redirected standard output.";
