use clap::Args;

use crate::policy_args::PolicyArgs;
use crate::storm::OutputArgs;

/// Kill a real server under real clients, watch them come back, and report it beside its simulation
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Without an argument: 3,000 clients, and three policies one after the other, in half a minute.
A strategy stands in the report twice: as it was measured, and as it is simulated, with the same waits of every client and
what was measured of the machine: times on the wire, of the losses and until the server was back.
A run is called doubtful where the machine, and not the policy, may have shaped the curve.
Figures can be asserted as in `stagger simulate`; what is simulated is not.
^C keeps the runs that are finished.
Exit status: 0; 1 if an assertion does not hold; 2 for a command line that makes no sense, and limits that are too low; 125
for what cannot be read, written or started; 130 after ^C.")]
pub(crate) struct DrillArgs {
    /// How many clients there are [default: 3k, or what the limits allow]
    #[arg(long, value_name = "N", help_heading = "Drill")]
    pub(super) clients: Option<String>,

    /// What the server takes: connections a second, as in 500/s [default: 600/s]
    #[arg(long, alias = "accept-rate", value_name = "RATE", help_heading = "Drill")]
    pub(super) capacity: Option<String>,

    /// How many may wait at the server; more are refused, with the status 503 [default: 300]
    #[arg(long, alias = "queue", value_name = "N", help_heading = "Drill")]
    pub(super) backlog: Option<String>,

    /// How long the server is down, at least [default: 0s]
    #[arg(long, value_name = "DUR", help_heading = "Drill")]
    pub(super) down: Option<String>,

    /// How long a run takes at most; who is not back by then never is [default: 1m]
    #[arg(long, value_name = "DUR", help_heading = "Drill")]
    pub(super) horizon: Option<String>,

    /// How many connections the kernel keeps that nobody has accepted yet [default: --clients, or what the kernel allows]
    #[arg(long, value_name = "N", help_heading = "Drill")]
    pub(super) listen_backlog: Option<String>,

    /// Connect to a server of yours, like ws://127.0.0.1:9000/feed, which you restart when you are told; say with --capacity
    /// what it takes
    #[arg(long, value_name = "URL", conflicts_with_all = ["backlog", "down", "listen_backlog"], help_heading = "Drill")]
    pub(super) url: Option<String>,

    /// What restarts the server of --url, for the shell
    #[arg(long, value_name = "COMMAND", requires = "url", help_heading = "Drill")]
    pub(super) restart_cmd: Option<String>,

    /// With a --url that is not of this machine: it is yours, and nobody else depends on it
    #[arg(long, requires = "url", help_heading = "Drill")]
    pub(super) i_own_this_server: bool,

    #[command(flatten)]
    pub(super) policy: PolicyArgs,

    /// Policies one after the other, each as --policy has it, set apart by commas; 'NAME: POLICY' gives one a name. The
    /// flags override each of them
    #[arg(long, value_name = "POLICY,...", help_heading = "Drill")]
    pub(super) compare: Vec<String>,

    /// What must hold for every policy as it was measured, like 'peak_1s<=600,recovered_p99<=30s'
    #[arg(long, value_name = "FIGURE<=VALUE,...", help_heading = "Drill")]
    pub(super) assert: Vec<String>,

    #[command(flatten)]
    pub(super) outputs: OutputArgs,
}
