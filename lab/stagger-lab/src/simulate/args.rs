//! The flags of `stagger simulate`.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Args, Command, Error, ValueEnum, ValueHint};
use serde::Deserialize;
use stagger_report::output::OutputArgs;
use stagger_terminal::policy_args::PolicyArgs;

use super::guards::settings_help;
use super::incident::Incident;
use super::settings::MAX_SEEDS;

/// Simulate a retry storm in virtual time, and report the load on the server
#[derive(Args, Clone, Debug)]
#[command(
    before_help = "\
Examples:
  stagger simulate --compare 'socket.io,ours: exponential base=1s spread=10s'
  stagger simulate fluid --clients 50M --capacity 100k/s -n inf -o storm.html
  stagger simulate outage -n 2 --capacity 300/s --down 10s --backlog 600 \\
        --sweep rate=100,140,160
  stagger simulate outage -n 4 -d 100ms \\
        --guards 'none, tokens capacity=100+breaker'
  stagger simulate outage --processes 100 --down 20s --store-lost 25s..35s \\
        --guards 'quiet, lease tokens=500 refill=50/s'
  stagger simulate outage virtualservice.yaml --rate 900/s
  stagger simulate system three-tiers.toml --seeds 16 -o system.html
  stagger simulate @incident/aws-2025-10",
    after_help = after_help(),
)]
pub struct SimulateArgs {
    /// Scenario to simulate, or a published incident [default: reconnect]
    #[arg(value_parser = SubjectParser)]
    pub(crate) scenario: Option<Subject>,

    /// File of the system, for the scenario `system`: TOML; or @incident/NAME. For other scenarios, a configuration of
    /// Istio, Envoy, gRPC, nginx and others, whose policies are compared
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) system: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: SettingArgs,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,

    /// Read the scenario from a TOML file whose keys are the flag names: scenario = "reconnect", clients = "10k",
    /// compare = ["socket.io"]. Flags override the file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Simulate")]
    pub(crate) file: Option<PathBuf>,

    /// The policy of FILE to simulate, by its path in it, or a part of it that no other has [default: all]
    #[arg(long, value_name = "NAME", requires = "system", help_heading = "Simulate")]
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

    /// Number of runs per policy, with consecutive seeds from --seed, which defaults to 1 [default: 1]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SEEDS)),
        help_heading = "Simulate"
    )]
    pub(crate) seeds: Option<u32>,

    /// Comma-separated conditions that every policy and seed must meet, such as 'peak_1s<=600,recovered_p99<=30s'
    #[arg(long, value_name = "METRIC<=VALUE,...", help_heading = "Simulate")]
    pub(crate) assert: Vec<String>,

    /// Find the values of a number of the system's file at which it begins to stay down, or to recover: rate, attempts,
    /// timeout, for, a path such as edge.orders-database.timeout; with the values to search between if the usual ones
    /// are too far apart, as in rate=20/s..60/s. A run that is not decided goes on, up to 16 times the horizon of the
    /// file; one that is not decided then counts on neither side (system)
    #[arg(long, value_name = "NAME[=LOW..HIGH]", help_heading = "Simulate")]
    pub(crate) find: Option<String>,

    /// Draw a map of what the system survives over two numbers of its file, such as size,length of its trigger, or
    /// rate=10/s..90/s,for=1s..20s; runs go on until they are decided, as for --find (system)
    #[arg(long, value_name = "NAME,NAME", conflicts_with = "find", help_heading = "Simulate")]
    pub(crate) frontier: Option<String>,

    #[command(flatten)]
    pub(crate) outputs: OutputArgs,
}

/// What is simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Scenario(ScenarioKind),
    /// A reference to an incident, as it was written.
    Incident(String),
}

/// A scenario that can be simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScenarioKind {
    /// All clients lose their connections at once and reconnect to a server of limited capacity
    #[default]
    Reconnect,
    /// Fluid model of `reconnect`: deterministic, and as fast for 67 million clients as for a thousand
    Fluid,
    /// A server under steady traffic stalls or rejects requests for a while: does it recover?
    Outage,
    /// Clients update one row under optimistic concurrency control; one of the concurrent writers succeeds
    Occ,
    /// Services that call each other, as FILE describes them: do their retries keep them down after a fault?
    System,
}

impl ScenarioKind {
    /// Returns whether the results depend on the seed.
    pub(super) const fn is_random(self) -> bool {
        !matches!(self, Self::Fluid)
    }
}

/// Returns the names of what can be simulated: scenarios and incidents.
pub fn subjects() -> Vec<&'static str> {
    let scenarios = ["reconnect", "fluid", "outage", "occ", "system"];
    scenarios.into_iter().chain(Incident::offered().map(|(name, _)| name)).collect()
}

impl SimulateArgs {
    /// Returns the first flag that is a setting of a scenario or of a policy; `None` if all settings are in a file of
    /// another kind.
    pub(super) fn setting(&self) -> Option<String> {
        let policy = PolicyArgs { seed: None, ..self.policy.clone() };
        if let Some((name, _)) = self.settings.given().next() {
            return Some(format!("--{name}"));
        }
        let given = [
            ("policy flags", policy.is_given()),
            ("--compare", !self.compare.is_empty()),
            ("--sweep", !self.sweep.is_empty()),
            ("--file", self.file.is_some()),
        ];
        let (flag, _) = given.iter().find(|(_, is_given)| *is_given)?;
        Some((*flag).to_owned())
    }

    /// Returns the scenario, if one was named.
    pub(super) fn kind(&self) -> Option<ScenarioKind> {
        match self.scenario {
            Some(Subject::Scenario(kind)) => Some(kind),
            _ => None,
        }
    }

    /// Returns the reference to an incident, if there is one: in place of the scenario, or of the file of a system.
    pub(super) fn incident(&self) -> Option<&str> {
        match &self.scenario {
            Some(Subject::Incident(reference)) => Some(reference),
            Some(Subject::Scenario(ScenarioKind::System)) => {
                let path = self.system.as_ref()?.to_str()?;
                if Incident::is_meant(path) { Some(path) } else { None }
            }
            _ => None,
        }
    }
}

/// Parses a [`Subject`]; suggests `--json=FILE` and `outage FILE` if the value looks like a file name.
#[derive(Clone)]
struct SubjectParser;

impl TypedValueParser for SubjectParser {
    type Value = Subject;

    fn parse_ref(&self, cmd: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Subject, Error> {
        let name = value.to_string_lossy();
        // Its errors name the incidents.
        if Incident::is_meant(&name) {
            return Ok(Subject::Incident(name.into_owned()));
        }
        let kind = EnumValueParser::<ScenarioKind>::new().parse_ref(cmd, arg, value).map_err(|mut error| {
            if name == "-" || name.contains(['.', '/']) {
                let written = format!("to write to a file, use `=`: --json={name}");
                let read = format!("to simulate the policies of a file, name the scenario: simulate outage {name}");
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![written.into(), read.into()]));
            }
            error
        });
        kind.map(Subject::Scenario)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let incidents = Incident::offered().map(|(name, help)| PossibleValue::new(name).help(help));
        Some(Box::new(
            ScenarioKind::value_variants().iter().filter_map(ScenarioKind::to_possible_value).chain(incidents),
        ))
    }
}

/// Settings of all scenarios, as text. They are parsed when the scenario is built.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Scenario")]
pub(crate) struct SettingArgs {
    /// Number of clients (reconnect, fluid, occ) [default: 10k; occ: 100]
    #[arg(long, value_name = "N")]
    clients: Option<String>,

    /// Server capacity in connections or requests per second, such as 500/s or 30/min (reconnect, fluid, outage)
    /// [default: 1000/s]
    #[arg(long, alias = "accept-rate", value_name = "RATE")]
    capacity: Option<String>,

    /// Request rate of all clients together (outage) [default: 800/s]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,

    /// Number of requests that may queue at the server; further ones are rejected (reconnect, fluid, outage) [default:
    /// 500; outage: 3000]
    #[arg(long, alias = "queue", value_name = "N")]
    backlog: Option<String>,

    /// Server downtime from the start of the storm; for outage, how long the outage lasts (reconnect, fluid, outage)
    /// [default: 0s; outage: 2s]
    #[arg(long, value_name = "DUR")]
    down: Option<String>,

    /// One-way network latency: a range for reconnect and fluid, one value for outage, MEAN+-DEVIATION for occ
    /// [default: 10ms..40ms; outage: 5ms; occ: 10ms+-2ms]
    #[arg(long, value_name = "DUR..DUR")]
    one_way: Option<String>,

    /// Time window in which the clients lose their connections (reconnect, fluid) [default: 300ms]
    #[arg(long, value_name = "DUR")]
    disconnect_window: Option<String>,

    /// First attempt of a client (reconnect, fluid): after-delay, which waits for the policy's spread or first delay;
    /// or immediate, which waits only for a spread [default: after-delay]
    #[arg(long, value_name = "after-delay|immediate")]
    first_attempt: Option<String>,

    /// Retry-After in the server's rejections (reconnect, outage): none; DUR, the same for every client; for reconnect
    /// also staggered, a different one for each client, or reservations, which the server enforces [default: none]
    #[arg(long, value_name = "none|DUR|staggered|reservations")]
    retry_after: Option<String>,

    /// Let the server crash again under the clients that return, up to this number of times (reconnect): all
    /// connections are lost, and it is down for as long as the first time. See --crash-above [default: 0]
    #[arg(long, value_name = "N")]
    crash_loop: Option<String>,

    /// The server in a crash loop crashes when more attempts than this arrive within a second (reconnect) [default:
    /// twice the capacity]
    #[arg(long, value_name = "RATE")]
    crash_above: Option<String>,

    /// Limit of the simulated time (reconnect, fluid, outage) [default: 1d; outage: 2m, or the time of
    /// 2,400 requests]
    #[arg(long, value_name = "DUR")]
    horizon: Option<String>,

    /// Kind of outage: stall (requests wait), reject (requests fail immediately) or throttle (requests are refused as
    /// too many, for which quiet periods and pacers wait) [default: stall]
    #[arg(long, value_name = "stall|reject|throttle")]
    outage: Option<String>,

    /// Start of the outage [default: 20s]
    #[arg(long, value_name = "DUR")]
    start: Option<String>,

    /// How long a client waits for a response (outage) [default: 1s]
    #[arg(long, value_name = "DUR")]
    timeout: Option<String>,

    /// Number of client processes, each with its own guards (reconnect, outage) [default: one per client; outage: 10]
    #[arg(long, value_name = "N")]
    processes: Option<String>,

    /// Guards of each process (reconnect, outage): none; a budget, which is tokens, window, lifetime, throttle,
    /// concurrent, adaptive or success-rate, or lease, one for all processes; breaker; quiet, a quiet period; pacer; or
    /// several of them, such as tokens+breaker. Settings follow a guard, as in 'tokens capacity=100, window
    /// ratio=10%+breaker open=(constant base=5s)'; those of each guard are listed below. Several, comma-separated, are
    /// compared [default: none]
    #[arg(long, value_name = "GUARDS,...")]
    guards: Option<String>,

    /// When no process can reach the store of a lease (reconnect, outage) [default: never]
    #[arg(long, value_name = "FROM..UNTIL")]
    store_down: Option<String>,

    /// Like --store-down, for a store that returns without its data (reconnect, outage) [default: never]
    #[arg(long, value_name = "FROM..UNTIL")]
    store_lost: Option<String>,

    /// When a share of the processes cannot reach the store of a lease, such as '30% 25s..40s' (reconnect, outage)
    /// [default: never]
    #[arg(long, value_name = "SHARE FROM..UNTIL")]
    store_cut: Option<String>,
}

impl SettingArgs {
    /// Returns the names of all settings.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        Self::default().all().map(|(name, _)| name).into_iter()
    }

    /// Returns the settings that were given, each with its name.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.all().into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }

    const fn all(&self) -> [(&'static str, &Option<String>); 20] {
        [
            ("clients", &self.clients),
            ("capacity", &self.capacity),
            ("rate", &self.rate),
            ("backlog", &self.backlog),
            ("down", &self.down),
            ("one-way", &self.one_way),
            ("disconnect-window", &self.disconnect_window),
            ("first-attempt", &self.first_attempt),
            ("retry-after", &self.retry_after),
            ("crash-loop", &self.crash_loop),
            ("crash-above", &self.crash_above),
            ("horizon", &self.horizon),
            ("outage", &self.outage),
            ("start", &self.start),
            ("timeout", &self.timeout),
            ("processes", &self.processes),
            ("guards", &self.guards),
            ("store-down", &self.store_down),
            ("store-lost", &self.store_lost),
            ("store-cut", &self.store_cut),
        ]
    }
}

/// Returns what stands below the options.
fn after_help() -> String {
    const REST: &str = "\
A setting that the scenario does not have is an error. Assertions use the metric names of the JSON document; a \
trailing `_s` may be omitted. The same seed produces the same files, byte for byte. After Ctrl-C, the report contains \
the runs that have finished.

Exit status: 0 on success; 1 if an assertion fails; 2 for a usage error or an invalid scenario; 125 if a file cannot \
be read or written; 130 after Ctrl-C, 143 after SIGTERM.";
    format!("{}\n\n{REST}", settings_help())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_subjects_are_offered() {
        let offered = SubjectParser.possible_values().unwrap().map(|value| value.get_name().to_owned());
        assert_eq!(offered.collect::<Vec<_>>(), subjects());
    }
}
