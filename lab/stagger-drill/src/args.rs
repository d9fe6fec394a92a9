//! The command line of `stagger drill`, and the settings of a drill that kills a server.

use core::time::Duration;

use clap::{Args, ValueEnum};
use stagger_core::{Policy, Seed};
use stagger_report::output::OutputArgs;
use stagger_report::parse::{self, named_policies, number_duplicates};
use stagger_terminal::output::error::CliError;
use stagger_terminal::policy_args::PolicyArgs;

use super::command_clients::CommandLine;

/// Kill a real server while real clients are connected, and compare their recovery with a simulation
#[derive(Args, Clone, Debug)]
#[command(
    before_help = "\
Examples:
  stagger drill
  stagger drill --clients 500 --compare 'socket.io,ours: exponential base=1s'
  stagger drill outage --rate 80/s --compare 'zero max-attempts=3,aws-sdk'
  stagger drill --url ws://127.0.0.1:9000/feed --capacity 500/s \\
        --restart-cmd 'systemctl restart feed'
  stagger drill --client 'node clients.mjs' --policy reconnecting-websocket",
    after_help = "\
Without arguments, runs three policies with 3,000 clients each, which takes half a minute; `drill outage` runs two \
policies in 20 seconds.

The report has two rows per policy: measured, and simulated with the same random delays and with the latency, \
disconnect window and downtime that were measured. They agree if the most attempts in any 100 ms, the attempts per \
client, the times when half and 99% were back, and the clients that were back at the end are at most 10% outside the \
range of eight simulations, or at most noise (3 attempts, 0.02 attempts per client, 100 ms, 2 clients); in `drill \
outage`, if success, attempts per request and longest queue are (noise: 2 points, 0.02 attempts, 2 places). A run is \
marked unreliable, and has no verdict, if the machine, rather than the policy, may have shaped the result. Assertions \
use the same metric names as in `stagger simulate` and apply to the measured rows only. After Ctrl-C, the report \
contains the runs that have finished.

A command of --client is started without a shell. It opens STAGGER_DRILL_CLIENTS WebSockets to STAGGER_DRILL_URL, \
which reconnect whenever they are lost, until it is killed with its process group. If its clients can, they use \
STAGGER_DRILL_POLICY, STAGGER_DRILL_SEED, and STAGGER_DRILL_FIRST, the number of the first client of the process. What \
it prints is shown only if it fails.

Exit status: 0 on success; 1 if an assertion fails; 2 for a usage error or if a system limit is too low; 125 if \
something cannot be read, written or started; 130 after Ctrl-C, 143 after SIGTERM."
)]
pub struct DrillArgs {
    /// What is done to the server
    #[arg(value_enum, default_value_t = DrillScenario::Reconnect)]
    pub(super) scenario: DrillScenario,

    /// Number of clients (reconnect) [default: 3k, or as many as the system limits allow]
    #[arg(long, value_name = "N", help_heading = "Drill")]
    pub(super) clients: Option<String>,

    /// Server capacity in connections per second, such as 500/s (reconnect) [default: 600/s]
    #[arg(long, alias = "accept-rate", value_name = "RATE", help_heading = "Drill")]
    pub(super) capacity: Option<String>,

    /// Number of connections that may queue at the server, or for outage of attempts that may be there, those in
    /// service included; further ones are rejected with status 503 [default: 300; outage: 100]
    #[arg(long, alias = "queue", value_name = "N", help_heading = "Drill")]
    pub(super) backlog: Option<String>,

    /// Minimum downtime of the server; for outage, how long it stalls [default: 0s; outage: 1s]
    #[arg(long, value_name = "DUR", help_heading = "Drill")]
    pub(super) down: Option<String>,

    /// Maximum duration of a run; clients that have not reconnected by then count as unfinished. For outage, the time
    /// up to which the requests are judged [default: 1m; outage: 8s]
    #[arg(long, value_name = "DUR", help_heading = "Drill")]
    pub(super) horizon: Option<String>,

    /// Listen backlog: connections that the kernel queues until the server accepts them (reconnect) [default:
    /// --clients, or the kernel's limit if that is lower]
    #[arg(long, value_name = "N", help_heading = "Drill")]
    pub(super) listen_backlog: Option<String>,

    /// Request rate, at equal intervals (outage) [default: 100/s]
    #[arg(long, value_name = "RATE", help_heading = "Drill")]
    pub(super) rate: Option<String>,

    /// Number of workers of the server (outage) [default: 4]
    #[arg(long, value_name = "N", help_heading = "Drill")]
    pub(super) workers: Option<String>,

    /// How long a worker needs for an attempt (outage) [default: 20ms]
    #[arg(long, value_name = "DUR", help_heading = "Drill")]
    pub(super) service: Option<String>,

    /// How long a client waits for a response (outage) [default: 250ms]
    #[arg(long, value_name = "DUR", help_heading = "Drill")]
    pub(super) timeout: Option<String>,

    /// Start of the outage (outage) [default: 1s]
    #[arg(long, value_name = "DUR", help_heading = "Drill")]
    pub(super) start: Option<String>,

    /// Slow the server down by this factor instead of stalling it: for what it begins during the outage (outage)
    #[arg(long, value_name = "X", help_heading = "Drill")]
    pub(super) slow: Option<String>,

    /// Connect to your own server, such as ws://127.0.0.1:9000/feed, and restart it when prompted, or with
    /// --restart-cmd (reconnect). Requires --capacity
    #[arg(long, value_name = "URL", conflicts_with_all = ["backlog", "down", "listen_backlog"], help_heading = "Drill")]
    pub(super) url: Option<String>,

    /// Shell command that restarts the server at --url (reconnect)
    #[arg(long, value_name = "COMMAND", requires = "url", help_heading = "Drill")]
    pub(super) restart_cmd: Option<String>,

    /// Confirm that you own the server at --url and that nothing else depends on it; required if it runs on another
    /// machine
    #[arg(long, requires = "url", help_heading = "Drill")]
    pub(super) i_own_this_server: bool,

    /// Run the clients of this command, such as 'node client.mjs', instead of stagger's own, and compare what the
    /// server sees of them with what --policy predicts (reconnect). The command finds the address of the server, the
    /// number of clients and more in the environment; see below
    #[arg(long, value_name = "COMMAND", conflicts_with = "url", help_heading = "Drill")]
    pub(super) client: Option<String>,

    /// Number of processes of --client that share the clients [default: 1]
    #[arg(long, value_name = "N", requires = "client", help_heading = "Drill")]
    pub(super) processes: Option<String>,

    /// Command of the server that the clients of --client need. It must listen on 127.0.0.1, at the port in the
    /// environment variable PORT; a relay before it is killed and restarted in its place
    #[arg(long, value_name = "COMMAND", requires = "client", help_heading = "Drill")]
    pub(super) server: Option<String>,

    #[command(flatten)]
    pub(super) policy: PolicyArgs,

    /// Comma-separated policies to run one after another, in the syntax of --policy; 'NAME: POLICY' names one. Policy
    /// flags override each of them
    #[arg(long, value_name = "POLICY,...", help_heading = "Drill")]
    pub(super) compare: Vec<String>,

    /// Comma-separated conditions that every policy must meet as measured, such as 'peak_1s<=600,recovered_p99<=30s',
    /// or agrees=yes
    #[arg(long, value_name = "METRIC<=VALUE,...", help_heading = "Drill")]
    pub(super) assert: Vec<String>,

    #[command(flatten)]
    pub(super) outputs: OutputArgs,
}

/// A scenario of a drill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrillScenario {
    /// A server is killed while clients are connected, and started again
    Reconnect,
    /// A server stalls or slows down for a while under steady load: does it recover?
    Outage,
}

impl DrillArgs {
    /// Rejects flags that the scenario does not have.
    pub(super) fn check(&self) -> Result<(), CliError> {
        let reconnect = [
            ("--clients", self.clients.is_some()),
            ("--capacity", self.capacity.is_some()),
            ("--listen-backlog", self.listen_backlog.is_some()),
            ("--url", self.url.is_some()),
            ("--client", self.client.is_some()),
        ];
        let outage = [
            ("--rate", self.rate.is_some()),
            ("--workers", self.workers.is_some()),
            ("--service", self.service.is_some()),
            ("--timeout", self.timeout.is_some()),
            ("--start", self.start.is_some()),
            ("--slow", self.slow.is_some()),
        ];
        let (flags_of_other, remedy) = match self.scenario {
            DrillScenario::Outage => {
                (&reconnect[..], "a drill of an outage has --rate, --workers, --service, --timeout, --start and --slow")
            }
            DrillScenario::Reconnect => (&outage[..], "use: stagger drill outage"),
        };
        for (flag, is_given) in flags_of_other {
            if *is_given {
                return Err(CliError::usage(format_args!("{flag} is of the other scenario; {remedy}")));
            }
        }
        Ok(())
    }
}

/// Parses the value of a flag, if it is given; an error names the flag.
pub(super) fn parse_flag<T>(
    flag: &str,
    value: &Option<String>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, CliError> {
    let taken = value.as_deref().map(parse).transpose();
    taken.map_err(|error| CliError::usage(format_args!("{flag}: {error}")))
}

/// The parsed command line; see [`DrillArgs`] for the meaning of each value.
#[derive(Debug)]
pub(super) struct Settings {
    /// `None` for as many as the limits allow, up to [`CLIENTS`].
    pub(super) clients: Option<u32>,
    pub(super) rate: f64,
    pub(super) backlog: u32,
    pub(super) down: Duration,
    pub(super) horizon: Duration,
    /// `None` for the number of clients, or the limit of the kernel if it is lower.
    pub(super) listen_backlog: Option<u32>,
    pub(super) policies: Vec<(String, Policy)>,
    /// The clients of --client; `None` for those of this program.
    pub(super) command_clients: Option<CommandClients>,
    pub(super) seed: Seed,
}

/// Number of clients without --clients, if the limits of the system allow it.
pub(super) const CLIENTS: u32 = 3_000;
const RATE: f64 = 600.0;
const BACKLOG: u32 = 300;
const HORIZON: Duration = Duration::from_secs(60);
/// Default seed, so that a drill uses the same delays every time.
const SEED: u64 = 1;

/// Policies of a drill without arguments: no jitter, full jitter, and full jitter with a spread slightly longer than
/// the server needs to accept all clients.
const DEFAULT_POLICIES: [&str; 3] = [
    "no jitter: exponential base=500ms cap=1s jitter=none max-attempts=none",
    "full jitter: exponential base=500ms cap=4s jitter=full max-attempts=none",
    "spread: exponential base=500ms cap=4s jitter=full spread=6s max-attempts=none",
];

/// The clients of a command.
#[derive(Clone, Debug)]
pub(super) struct CommandClients {
    pub(super) command: CommandLine,
    /// Number of processes that share the clients.
    pub(super) processes: u32,
    /// The command of the clients' own server; `None` for that of the drill.
    pub(super) server: Option<CommandLine>,
}

impl Settings {
    pub(super) fn new(args: &DrillArgs) -> Result<Self, CliError> {
        if args.url.is_some() && args.capacity.is_none() {
            return Err(CliError::usage(
                "--url: the capacity of your server is required for the metrics and the simulation; add it, such as \
                 --capacity 500/s",
            ));
        }
        if args.client.is_some() && args.compare.is_empty() && !args.policy.is_given() {
            return Err(CliError::usage(
                "--client: the policy that these clients are expected to have is required; add it, such as --policy \
                 socket.io (`stagger plan --profiles` shows all)",
            ));
        }
        let mut policies = if args.compare.is_empty() && !args.policy.is_given() {
            named_policies(&DEFAULT_POLICIES.map(str::to_owned), &args.policy)?
        } else {
            named_policies(&args.compare, &args.policy)?
        };
        number_duplicates(&mut policies, |(name, _)| name);
        let rate = parse_flag("--capacity", &args.capacity, parse::rate)?;
        Ok(Self {
            clients: parse_flag("--clients", &args.clients, parse::count_u32)?,
            rate: rate.unwrap_or(RATE),
            backlog: parse_flag("--backlog", &args.backlog, parse::count_u32)?.unwrap_or(BACKLOG),
            down: parse_flag("--down", &args.down, parse::duration)?.unwrap_or_default(),
            horizon: parse_flag("--horizon", &args.horizon, parse::duration)?.unwrap_or(HORIZON),
            listen_backlog: parse_flag("--listen-backlog", &args.listen_backlog, parse::count_u32)?,
            policies,
            command_clients: command_clients(args)?,
            seed: Seed::new(args.policy.seed.unwrap_or(SEED)),
        })
    }
}

/// Returns the clients of --client, if it is given.
fn command_clients(args: &DrillArgs) -> Result<Option<CommandClients>, CliError> {
    let Some(client) = &args.client else { return Ok(None) };
    Ok(Some(CommandClients {
        command: CommandLine::parse("--client", client)?,
        processes: parse_flag("--processes", &args.processes, parse::count_u32)?.unwrap_or(1),
        server: args.server.as_deref().map(|server| CommandLine::parse("--server", server)).transpose()?,
    }))
}
