use clap::Args;

use crate::policy_args::PolicyArgs;
use crate::storm::OutputArgs;

/// Kill a real server while real clients are connected, and compare their recovery with a simulation
#[derive(Args, Clone, Debug)]
#[command(
    before_help = "\
Examples:
  stagger drill
  stagger drill --clients 500 --compare 'socket.io,ours: exponential base=1s'
  stagger drill --url ws://127.0.0.1:9000/feed --capacity 500/s \\
        --restart-cmd 'systemctl restart feed'",
    after_help = "\
Without arguments, runs three policies with 3,000 clients each, which takes half a minute.

The report has two rows per policy: measured, and simulated with the same random delays and with the latency, disconnect \
window and downtime that were measured. A run is marked unreliable if the machine, rather than the policy, may have \
shaped the result. Assertions use the same metric names as in `stagger simulate` and apply to the measured rows only. \
After Ctrl-C, the report contains the runs that have finished.

Exit status: 0 on success; 1 if an assertion fails; 2 for a usage error or if a system limit is too low; 125 if \
something cannot be read, written or started; 130 after Ctrl-C, 143 after SIGTERM."
)]
pub(crate) struct DrillArgs {
    /// Number of clients [default: 3k, or as many as the system limits allow]
    #[arg(long, value_name = "N", help_heading = "Drill")]
    pub(super) clients: Option<String>,

    /// Server capacity in connections per second, such as 500/s [default: 600/s]
    #[arg(long, alias = "accept-rate", value_name = "RATE", help_heading = "Drill")]
    pub(super) capacity: Option<String>,

    /// Number of connections that may queue at the server; further ones are rejected with status 503 [default: 300]
    #[arg(long, alias = "queue", value_name = "N", help_heading = "Drill")]
    pub(super) backlog: Option<String>,

    /// Minimum downtime of the server [default: 0s]
    #[arg(long, value_name = "DUR", help_heading = "Drill")]
    pub(super) down: Option<String>,

    /// Maximum duration of a run; clients that have not reconnected by then count as unfinished [default: 1m]
    #[arg(long, value_name = "DUR", help_heading = "Drill")]
    pub(super) horizon: Option<String>,

    /// Listen backlog: connections that the kernel queues until the server accepts them [default: --clients, or the
    /// kernel's limit if that is lower]
    #[arg(long, value_name = "N", help_heading = "Drill")]
    pub(super) listen_backlog: Option<String>,

    /// Connect to your own server, such as ws://127.0.0.1:9000/feed, and restart it when prompted, or with
    /// --restart-cmd. Requires --capacity
    #[arg(long, value_name = "URL", conflicts_with_all = ["backlog", "down", "listen_backlog"], help_heading = "Drill")]
    pub(super) url: Option<String>,

    /// Shell command that restarts the server at --url
    #[arg(long, value_name = "COMMAND", requires = "url", help_heading = "Drill")]
    pub(super) restart_cmd: Option<String>,

    /// Confirm that you own the server at --url and that nothing else depends on it; required if it runs on another
    /// machine
    #[arg(long, requires = "url", help_heading = "Drill")]
    pub(super) i_own_this_server: bool,

    #[command(flatten)]
    pub(super) policy: PolicyArgs,

    /// Comma-separated policies to run one after another, in the syntax of --policy; 'NAME: POLICY' names one. Policy
    /// flags override each of them
    #[arg(long, value_name = "POLICY,...", help_heading = "Drill")]
    pub(super) compare: Vec<String>,

    /// Comma-separated conditions that every policy must meet as measured, such as 'peak_1s<=600,recovered_p99<=30s'
    #[arg(long, value_name = "METRIC<=VALUE,...", help_heading = "Drill")]
    pub(super) assert: Vec<String>,

    #[command(flatten)]
    pub(super) outputs: OutputArgs,
}
