use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// Wait until ports, URLs, files, processes or commands are ready, then run a command
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_long_help = AFTER_HELP)]
pub(crate) struct WaitArgs {
    /// What to wait for: HOST:PORT or tcp://HOST:PORT, unix:/SOCKET, http://... or https://..., file:PATH (exists),
    /// pid:NUMBER (has ended), cmd:COMMAND (exits with 0, run by /bin/sh)
    #[arg(value_name = "TARGET", required_unless_present = "commands", help_heading = None::<&str>)]
    pub(crate) targets: Vec<String>,

    /// Shell command that must exit with 0, as one more target. Repeatable
    #[arg(long = "command", value_name = "CMD", value_hint = ValueHint::CommandString, help_heading = "Targets")]
    pub(crate) commands: Vec<String>,

    /// Wait until all targets are ready. This is the default
    #[arg(long, conflicts_with = "any", help_heading = "Targets")]
    all: bool,

    /// Wait until any of the targets is ready
    #[arg(long, help_heading = "Targets")]
    pub(crate) any: bool,

    /// Wait for the opposite: the port refuses connections, the file is away, the URL has another status or its port
    /// refuses connections, the name does not exist, the command fails. An attempt without an answer proves neither
    #[arg(long, help_heading = "Targets")]
    pub(crate) gone: bool,

    /// Time for which every attempt must find a target ready; the size and the time of change of a file must stay the
    /// same [default: the first ready attempt suffices]
    #[arg(long, value_name = "DUR", help_heading = "Targets")]
    pub(crate) stable: Option<String>,

    /// A file must not be empty
    #[arg(long, help_heading = "Targets")]
    pub(crate) non_empty: bool,

    /// Time limit for the whole wait; 'inf' for no limit
    #[arg(short, long, value_name = "DUR", default_value = "60s", help_heading = "Limits")]
    pub(crate) timeout: String,

    /// Time limit for each attempt
    #[arg(long, value_name = "DUR", default_value = "5s", help_heading = "Limits")]
    pub(crate) attempt_timeout: String,

    /// Give up after this many attempts in a row that find a target not ready; 'inf' for no limit
    #[arg(short = 'n', long, alias = "attempts", value_name = "N|inf", default_value = "inf", help_heading = "Limits")]
    pub(crate) max_attempts: String,

    /// Give up immediately, with exit status 1, on what waiting seldom changes: a name that does not exist, a
    /// certificate that is not trusted, a status like 404
    #[arg(long, help_heading = "Limits")]
    pub(crate) fail_fast: bool,

    /// Statuses that count as ready: 2xx,304,400-403
    #[arg(long, value_name = "SET", default_value = "2xx", help_heading = "HTTP")]
    pub(crate) status: String,

    /// Regular expression that the first MiB of the body must match
    #[arg(long, value_name = "REGEX", help_heading = "HTTP")]
    pub(crate) body: Option<String>,

    /// Header of the request. Repeatable
    #[arg(short = 'H', long, value_name = "NAME: VALUE", help_heading = "HTTP")]
    pub(crate) header: Vec<String>,

    /// Send HEAD instead of GET
    #[arg(long, conflicts_with = "body", help_heading = "HTTP")]
    pub(crate) head: bool,

    /// Follow up to ten redirects, and judge the last response; another origin gets no headers of -H
    #[arg(short = 'L', long, help_heading = "HTTP")]
    pub(crate) location: bool,

    /// Trust only the certificates of this PEM file, in place of the system's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "HTTP")]
    pub(crate) cacert: Option<PathBuf>,

    /// Accept any certificate
    #[arg(long, help_heading = "HTTP")]
    pub(crate) insecure: bool,

    /// Delays between attempts: a policy, the NAME of a profile, or @FILE, as in `stagger run`. Its limits are not
    /// used; --timeout and --max-attempts are [default: 'exponential base=100ms cap=1s multiplier=1.25 jitter=±50%']
    #[arg(short, long, value_name = "SPEC|NAME|@FILE", help_heading = "Delays")]
    pub(crate) policy: Option<String>,

    /// Upper bound for the delays, which only the jitter may exceed: larger for a fleet that waits for one server
    /// [default without --policy: 1s]
    #[arg(long, value_name = "DUR", help_heading = "Delays")]
    pub(crate) cap: Option<String>,

    /// Upper bound of a random wait before the first attempt [default without --policy: 0s]
    #[arg(long, value_name = "DUR", help_heading = "Delays")]
    pub(crate) spread: Option<String>,

    /// Seed of the random delays, to reproduce an earlier wait [default: random]
    #[arg(long, value_name = "N", help_heading = "Delays")]
    pub(crate) seed: Option<u64>,

    /// Log format: for humans, JSON lines, or off
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = WaitLogFormat::Human, help_heading = "Reporting")]
    pub(crate) log: WaitLogFormat,

    /// Same as --log off
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Reporting")]
    pub(crate) quiet: bool,

    /// Also log each attempt
    #[arg(short, long, help_heading = "Reporting")]
    pub(crate) verbose: bool,

    /// Command that replaces stagger once the targets are ready; it is not run otherwise
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&str>,
          value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WaitLogFormat {
    /// For humans: a live status line on a terminal, and a line for each target
    Human,
    /// JSON lines, schema stagger.wait/1
    Json,
    /// Nothing
    Off,
}

/// Lines fit a manual page of 80 columns.
const EXAMPLES: &str = "\
Examples:
  stagger wait db:5432 -- ./server
  stagger wait -t 2m https://example.com/health cache:6379 -- ./server
  stagger wait --command 'pg_isready -q -h db' -- ./migrate.sh
  stagger wait --gone --timeout 30s localhost:8080
  stagger wait --stable 2s file:/data/export.csv && ./import.sh";

const AFTER_HELP: &str = "\
Exit status:
  0        the targets were ready; with a command, its own exit status
  1        --fail-fast ended the wait
  124      the targets were not ready in time, or after --max-attempts
  125      usage error, or stagger itself failed
  126      the command cannot be executed
  127      the command was not found
  128+N    a signal ended the wait

Names are looked up anew for each attempt, and every address is tried. A name that does not exist yet is waited for. HTTP \
requests honor http_proxy, https_proxy, all_proxy and no_proxy as curl does, and a Retry-After of the response up to the max-hint \
of \
the policy (30 s by default). Passwords and queries of URLs are not logged.";
