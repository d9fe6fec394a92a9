//! The flags of `stagger simulate`: a command for each scenario, with its own settings.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand, ValueEnum, ValueHint};
use serde::Deserialize;
use stagger_report::output::OutputArgs;
use stagger_terminal::policy_args::PolicyArgs;

use super::guards::settings_help;
use super::incident::Incident;
use super::settings::MAX_SEEDS;

/// Simulate a retry storm in virtual time, and report the load on the server
#[derive(Args, Clone, Debug)]
#[command(
    arg_required_else_help = true,
    subcommand_required = true,
    before_help = "\
Examples:
  stagger simulate reconnect --compare 'socket.io,curl' --clients 10k
  stagger simulate outage -n 4 --guards 'none, tokens, breaker'
  stagger simulate system three-tiers.toml --find rate",
    after_help = EXIT_STATUS,
)]
pub struct SimulateArgs {
    #[command(subcommand)]
    pub(crate) scenario: Scenario,
}

/// A scenario with its flags.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Scenario {
    /// All clients lose their connections at once and reconnect to a server of limited capacity
    #[command(
        before_help = "\
Examples:
  stagger simulate reconnect --compare 'socket.io,phoenix' --clients 10k
  stagger simulate reconnect --clients 10k --sweep spread=0s,10s
  stagger simulate reconnect --crash-loop 5 -p socket.io -o storm.html",
        after_help = with_guards(),
    )]
    Reconnect(Box<StormArgs<{ ScenarioKind::Reconnect as usize }>>),

    /// Fluid model of `reconnect`: deterministic, and as fast for 67 million clients as for a thousand
    #[command(
        before_help = "\
Examples:
  stagger simulate fluid --clients 50M --capacity 100k/s -n inf -o storm.html",
        after_help = EXIT_STATUS,
    )]
    Fluid(Box<StormArgs<{ ScenarioKind::Fluid as usize }>>),

    /// A server under steady traffic stalls or rejects requests for a while: does it recover?
    #[command(
        before_help = "\
Examples:
  stagger simulate outage -n 2 --capacity 300/s --down 10s --backlog 600 \\
        --sweep rate=100,140,160
  stagger simulate outage -n 4 -d 100ms \\
        --guards 'none, tokens capacity=100+breaker'
  stagger simulate outage --processes 100 --down 20s --store-lost 25s..35s \\
        --guards 'quiet, lease tokens=500 refill=50/s'
  stagger simulate outage virtualservice.yaml --rate 900/s",
        after_help = with_guards(),
    )]
    Outage(Box<StormArgs<{ ScenarioKind::Outage as usize }>>),

    /// Clients update one row under optimistic concurrency control; one of the concurrent writers succeeds
    #[command(
        before_help = "\
Examples:
  stagger simulate occ --clients 100 --compare 'aws-sdk,constant base=10ms'",
        after_help = EXIT_STATUS,
    )]
    Occ(Box<StormArgs<{ ScenarioKind::Occ as usize }>>),

    /// Services that call each other, as FILE describes them: do their retries keep them down after a fault?
    #[command(
        before_help = "\
Examples:
  stagger simulate system three-tiers.toml --seeds 16 -o system.html
  stagger simulate system three-tiers.toml --find rate=20/s..60/s
  stagger simulate system @incident/aws-2025-10",
        after_help = EXIT_STATUS,
    )]
    System(Box<SystemArgs>),
}

/// A scenario whose policies are compared. `KIND` is a [`ScenarioKind`].
#[derive(Args, Clone, Debug)]
pub(crate) struct StormArgs<const KIND: usize> {
    #[command(flatten)]
    pub(crate) settings: SettingArgs<KIND>,

    #[command(flatten)]
    pub(crate) storm: CommonArgs,
}

/// What all scenarios have that compare policies.
#[derive(Args, Clone, Debug)]
pub(crate) struct CommonArgs {
    /// A configuration of Istio, Envoy, gRPC, nginx and others, whose policies are compared
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) configuration: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// Read the scenario from a TOML file whose keys are the flag names: clients = "10k", compare = ["socket.io"].
    /// Flags override the file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Simulate")]
    pub(crate) file: Option<PathBuf>,

    /// The policy of FILE to simulate, by its path in it, or a part of it that no other has [default: all]
    #[arg(long, value_name = "NAME", requires = "configuration", help_heading = "Simulate")]
    pub(crate) entry: Option<String>,

    /// Comma-separated policies to compare, in the syntax of --policy; 'NAME: POLICY' names one. Policy flags override
    /// each of them
    #[arg(long, value_name = "POLICY,...", help_heading = "Simulate")]
    pub(crate) compare: Vec<String>,

    /// Run each policy with each of these values of a setting of the policy or the scenario, such as spread=0s,5s,10s
    /// or 'rate=100..200 step 5'. Given several times, the values are combined with each other, and those of the last
    /// vary fastest; the trade-off chart connects these
    #[arg(long, value_name = "SETTING=VALUE,...", help_heading = "Simulate")]
    pub(crate) sweep: Vec<String>,

    #[command(flatten)]
    pub(crate) runs: RunArgs,

    #[command(flatten)]
    pub(crate) outputs: OutputArgs,
}

/// How often something is simulated, and what must hold.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Simulate")]
pub(crate) struct RunArgs {
    /// Number of runs of each, with consecutive seeds from --seed, which defaults to 1 [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SEEDS)))]
    pub(crate) seeds: Option<u32>,

    /// Comma-separated conditions that every run must meet, such as 'peak_1s<=600,recovered_p99<=30s'
    #[arg(long, value_name = "METRIC<=VALUE,...")]
    pub(crate) assert: Vec<String>,
}

/// The flags of `stagger simulate system`: all settings are in the file.
#[derive(Args, Clone, Debug)]
pub(crate) struct SystemArgs {
    /// File of the system; or @incident/NAME, a published incident
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Seed of the first run [default: 1]
    #[arg(long, value_name = "N", help_heading = "Simulate")]
    pub(crate) seed: Option<u64>,

    #[command(flatten)]
    pub(crate) runs: RunArgs,

    /// Find the values of a number of the file at which the system begins to stay down, or to recover: rate, attempts,
    /// timeout, for, a path such as edge.orders-database.timeout; with the values to search between if the usual ones
    /// are too far apart, as in rate=20/s..60/s. A run that is not decided goes on, up to 16 times the horizon of the
    /// file; one that is not decided then counts on neither side
    #[arg(long, value_name = "NAME[=LOW..HIGH]", help_heading = "Simulate")]
    pub(crate) find: Option<String>,

    /// Draw a map of what the system survives over two numbers of the file, such as size,length of its trigger, or
    /// rate=10/s..90/s,for=1s..20s; runs go on until they are decided, as for --find
    #[arg(long, value_name = "NAME,NAME", conflicts_with = "find", help_heading = "Simulate")]
    pub(crate) frontier: Option<String>,

    #[command(flatten)]
    pub(crate) outputs: OutputArgs,
}

/// A scenario in which policies are compared. The number of each is its place in [`SETTINGS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScenarioKind {
    Reconnect,
    Fluid,
    Outage,
    Occ,
}

impl ScenarioKind {
    /// Returns the name of the command.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Reconnect => "reconnect",
            Self::Fluid => "fluid",
            Self::Outage => "outage",
            Self::Occ => "occ",
        }
    }

    /// Returns whether the results depend on the seed.
    pub(super) const fn is_random(self) -> bool {
        !matches!(self, Self::Fluid)
    }
}

/// The name of a setting, of its value, and what it means.
type Setting = (&'static str, &'static str, &'static str);

const CLIENTS: Setting = ("clients", "N", "Number of clients [default: 10k]");
const CAPACITY: Setting = ("capacity", "RATE", "Server capacity per second, such as 500/s or 30/min [default: 1000/s]");
const BACKLOG: Setting =
    ("backlog", "N", "Number of requests that may queue at the server; further ones are rejected [default: 500]");
const DOWN: Setting = ("down", "DUR", "Server downtime from the start of the storm [default: 0s]");
const ONE_WAY: Setting = ("one-way", "DUR..DUR", "One-way network latency [default: 10ms..40ms]");
const DISCONNECT_WINDOW: Setting =
    ("disconnect-window", "DUR", "Time within which the clients lose their connections [default: 300ms]");
const FIRST_ATTEMPT: Setting = (
    "first-attempt",
    "after-delay|immediate",
    "First attempt of a client: after-delay, which waits for the policy's spread or first delay; or immediate, which \
     waits only for a spread [default: after-delay]",
);
const HORIZON: Setting = ("horizon", "DUR", "Limit of the simulated time [default: 1d]");
const GUARDS: Setting = (
    "guards",
    "GUARDS,...",
    "Guards of each process: none; a budget, which is tokens, window, lifetime, throttle, concurrent, adaptive or \
     success-rate, or lease, one for all processes; breaker; quiet, a quiet period; pacer; or several of them, such as \
     tokens+breaker. Settings follow a guard, as in 'tokens capacity=100, window ratio=10%+breaker open=(constant \
     base=5s)'. Several, comma-separated, are compared [default: none]",
);
const STORE_DOWN: Setting =
    ("store-down", "FROM..UNTIL", "When no process can reach the store of a lease [default: never]");
const STORE_LOST: Setting =
    ("store-lost", "FROM..UNTIL", "Like --store-down, for a store that returns without its data [default: never]");
const STORE_CUT: Setting = (
    "store-cut",
    "SHARE FROM..UNTIL",
    "When a share of the processes cannot reach the store of a lease, such as '30% 25s..40s' [default: never]",
);

/// The settings of each [`ScenarioKind`]. They are parsed when the scenario is built.
static SETTINGS: [&[Setting]; 4] = [
    &[
        CLIENTS,
        CAPACITY,
        BACKLOG,
        DOWN,
        ONE_WAY,
        DISCONNECT_WINDOW,
        FIRST_ATTEMPT,
        (
            "retry-after",
            "none|DUR|staggered|reservations",
            "Retry-After in the server's rejections: none; DUR, the same for every client; staggered, a different one \
             for each client; or reservations, which the server enforces [default: none]",
        ),
        (
            "crash-loop",
            "N",
            "Let the server crash again under the clients that return, up to this number of times: all connections \
             are lost, and it is down for as long as the first time. See --crash-above [default: 0]",
        ),
        (
            "crash-above",
            "RATE",
            "The server in a crash loop crashes when more attempts than this arrive within a second [default: twice \
             the capacity]",
        ),
        HORIZON,
        ("processes", "N", "Number of client processes, each with its own guards [default: one per client]"),
        GUARDS,
        STORE_DOWN,
        STORE_LOST,
        STORE_CUT,
    ],
    &[CLIENTS, CAPACITY, BACKLOG, DOWN, ONE_WAY, DISCONNECT_WINDOW, FIRST_ATTEMPT, HORIZON],
    &[
        ("rate", "RATE", "Request rate of all clients together [default: 800/s]"),
        CAPACITY,
        ("backlog", "N", "Number of requests that may queue at the server; further ones are rejected [default: 3000]"),
        (
            "outage",
            "stall|reject|throttle",
            "Kind of outage: stall (requests wait), reject (requests fail immediately) or throttle (requests are \
             refused as too many, for which quiet periods and pacers wait) [default: stall]",
        ),
        ("start", "DUR", "Start of the outage [default: 20s]"),
        ("down", "DUR", "How long the outage lasts [default: 2s]"),
        ("timeout", "DUR", "How long a client waits for a response [default: 1s]"),
        ("one-way", "DUR", "One-way network latency [default: 5ms]"),
        ("retry-after", "none|DUR", "Retry-After in the server's rejections [default: none]"),
        ("horizon", "DUR", "Limit of the simulated time [default: 2m, or the time of 2,400 requests]"),
        ("processes", "N", "Number of client processes, each with its own guards [default: 10]"),
        GUARDS,
        STORE_DOWN,
        STORE_LOST,
        STORE_CUT,
    ],
    &[
        ("clients", "N", "Number of clients [default: 100]"),
        ("one-way", "MEAN+-DEVIATION", "One-way network latency [default: 10ms+-2ms]"),
    ],
];

/// Returns the names of the settings of all scenarios.
pub(super) fn setting_names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().flat_map(|settings| settings.iter().map(|(name, ..)| *name))
}

/// The settings of a scenario that were given, each with its name. `KIND` is a [`ScenarioKind`].
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingArgs<const KIND: usize>(pub(crate) Vec<(&'static str, String)>);

impl<const KIND: usize> Args for SettingArgs<KIND> {
    fn augment_args(command: Command) -> Command {
        let arg = |(name, value, help): &Setting| Arg::new(*name).long(*name).value_name(*value).help(*help);
        command.next_help_heading("Scenario").args(SETTINGS[KIND].iter().map(arg)).next_help_heading(None::<&str>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const KIND: usize> FromArgMatches for SettingArgs<KIND> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given =
            SETTINGS[KIND].iter().filter_map(|(name, ..)| Some((*name, matches.get_one::<String>(name)?.clone())));
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns the command line for one of earlier versions, whose scenario had a default and could be an incident: the words
/// after `simulate`. `None` if it names a scenario, or asks for help.
pub fn renamed(words: &[OsString]) -> Option<String> {
    let first = words.first()?.to_str()?;
    let scenario = match first {
        "-h" | "--help" | "--help-all" => return None,
        _ if Incident::is_meant(first) => "system",
        _ if first.starts_with('-') => "reconnect",
        _ => return None,
    };
    let words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
    Some(format!("stagger simulate {scenario} {}", shlex::try_join(words).ok()?))
}

const EXIT_STATUS: &str = "\
Assertions use the metric names of the JSON document; a trailing `_s` may be omitted. The same seed produces the same \
files, byte for byte. After Ctrl-C, the report contains the runs that have finished.

Exit status: 0 on success; 1 if an assertion fails; 2 for a usage error or an invalid scenario; 125 if a file cannot \
be read or written; 130 after Ctrl-C, 143 after SIGTERM.";

/// Returns what stands below the options of a scenario with guards.
fn with_guards() -> String {
    format!("{}\n\n{EXIT_STATUS}", settings_help())
}
