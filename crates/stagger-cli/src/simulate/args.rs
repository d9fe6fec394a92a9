use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Args, Command, Error, ValueEnum, ValueHint};
use serde::Deserialize;

use crate::policy_args::PolicyArgs;
use crate::storm::OutputArgs;

/// Simulate a retry storm in virtual time, and report what it does to the server
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
A setting that the scenario does not have is refused. In a file they have the same names: clients = \"10k\".
Figures can be asserted by the names that they have in the JSON, without `_s`.
The same seed gives the same files, byte for byte. ^C keeps the runs that are finished.
Exit status: 0; 1 if an assertion does not hold; 2 for a command line or a scenario that makes no sense; 125 for what
cannot be read or written; 130 after ^C.")]
pub(crate) struct SimulateArgs {
    /// What happens [default: reconnect]
    #[arg(value_parser = KindParser)]
    pub(crate) scenario: Option<Kind>,

    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// A scenario as TOML, with the names of the flags: scenario = "reconnect", clients = "10k", compare = ["socket.io"].
    /// Flags override it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Simulate")]
    pub(crate) file: Option<PathBuf>,

    /// Policies side by side, each as --policy has it, set apart by commas; 'NAME: POLICY' gives one a name. The flags
    /// override each of them
    #[arg(long, value_name = "POLICY,...", help_heading = "Simulate")]
    pub(crate) compare: Vec<String>,

    /// Each policy with each of these values of a setting, like spread=0s,5s,10s,20s,30s: the picture of costs then shows
    /// where it pays
    #[arg(long, value_name = "SETTING=VALUE,...", help_heading = "Simulate")]
    pub(crate) sweep: Option<String>,

    /// So many runs of each policy, with seeds from --seed on, which is 1 unless given [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Simulate")]
    pub(crate) seeds: Option<u32>,

    /// What must hold for every policy and seed, like 'peak_1s<=600,recovered_p99<=30s'
    #[arg(long, value_name = "FIGURE<=VALUE,...", help_heading = "Simulate")]
    pub(crate) assert: Vec<String>,

    #[command(flatten)]
    pub(crate) outputs: OutputArgs,
}

/// What happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// Everyone loses the connection at once, and a server lets in so many a second
    #[default]
    Reconnect,
    /// The same by shares of the clients instead of one by one: at once, however many they are, and without chance
    Fluid,
    /// Requests come all the time, and the server stands still for a while: does it come back?
    Outage,
    /// Everyone writes one row, and of those who read it at the same time one is let through
    Occ,
}

/// Reads a [`Kind`]; who has set the name of a file apart from its flag hears how it is written.
#[derive(Clone)]
struct KindParser;

impl TypedValueParser for KindParser {
    type Value = Kind;

    fn parse_ref(&self, cmd: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Kind, Error> {
        EnumValueParser::<Kind>::new().parse_ref(cmd, arg, value).map_err(|mut error| {
            let name = value.to_string_lossy();
            if name == "-" || name.contains(['.', '/']) {
                let tip = format!("to write into a file, join its name to the flag: --json={name}");
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Kind::value_variants().iter().filter_map(Kind::to_possible_value)))
    }
}

/// The settings of all scenarios; their values are read where the scenario is built.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Scenario")]
pub(crate) struct SettingArgs {
    /// How many clients there are (reconnect, fluid, occ) [default: 10k; occ: 100]
    #[arg(long, value_name = "N")]
    clients: Option<String>,

    /// What the server takes: connections or jobs a second, as in 500/s or 30/min [default: 1000/s]
    #[arg(long, alias = "accept-rate", value_name = "RATE")]
    capacity: Option<String>,

    /// How many requests come (outage) [default: 800/s]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,

    /// How many may wait at the server; more are refused [default: 500; outage: 3000]
    #[arg(long, alias = "queue", value_name = "N")]
    backlog: Option<String>,

    /// How long the server is down, from the beginning; of an outage, how long it lasts [default: 0s; outage: 2s]
    #[arg(long, value_name = "DUR")]
    down: Option<String>,

    /// How long a message is underway: between two lengths, 10ms..40ms; outage: one length; occ: mean and deviation, 10ms+-2ms
    #[arg(long, value_name = "DUR..DUR")]
    one_way: Option<String>,

    /// Within what time the connections are lost (reconnect, fluid) [default: 300ms]
    #[arg(long, value_name = "DUR")]
    hits_within: Option<String>,

    /// What clients do first (reconnect, fluid): after-delay or at-once [default: after-delay]
    #[arg(long, value_name = "WHAT")]
    first: Option<String>,

    /// What the server tells whom it refuses (reconnect): silent, a time like 5s that is the same for all, slots, or
    /// appointments [default: silent]
    #[arg(long, value_name = "WHAT")]
    hints: Option<String>,

    /// When the simulation ends at the latest [default: 1d; outage: 2m]
    #[arg(long, value_name = "DUR")]
    horizon: Option<String>,

    /// What the outage is: stall (everything waits) or reject (everyone is turned away) [default: stall]
    #[arg(long, value_name = "WHAT")]
    outage: Option<String>,

    /// When the outage begins [default: 20s]
    #[arg(long, value_name = "DUR")]
    begins: Option<String>,

    /// How long a client waits for an answer (outage) [default: 1s]
    #[arg(long, value_name = "DUR")]
    timeout: Option<String>,

    /// How many client processes there are, each with guards of its own (outage) [default: 10]
    #[arg(long, value_name = "N")]
    processes: Option<String>,

    /// Guards of a process (outage): none, a budget (tokens, window, lifetime, throttle, concurrent, adaptive,
    /// success-rate), breaker, or both as in tokens+breaker; several, set apart by commas, are compared [default: none]
    #[arg(long, value_name = "GUARDS,...")]
    guards: Option<String>,
}

impl SettingArgs {
    /// What was given, by its name.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [
            ("clients", &self.clients),
            ("capacity", &self.capacity),
            ("rate", &self.rate),
            ("backlog", &self.backlog),
            ("down", &self.down),
            ("one-way", &self.one_way),
            ("hits-within", &self.hits_within),
            ("first", &self.first),
            ("hints", &self.hints),
            ("horizon", &self.horizon),
            ("outage", &self.outage),
            ("begins", &self.begins),
            ("timeout", &self.timeout),
            ("processes", &self.processes),
            ("guards", &self.guards),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}
