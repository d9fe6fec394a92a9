//! The settings of a drill that kills a server.

use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_report::storm::{named_policies, number_duplicates, parse};
use stagger_terminal::output::error::CliError;

use super::args::{DrillArgs, parse_flag};
use super::command_clients::CommandLine;

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
