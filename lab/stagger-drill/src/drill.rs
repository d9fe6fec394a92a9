//! What the runs of a drill share: its settings and resources, and the end by an interrupt.

use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use stagger_report::progress::Interrupt;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;
use tokio::runtime::Runtime;

use super::args::{CommandClients, Settings};
use super::machine::{TICK, TimerLag};
use super::serve::ServeArgs;
use super::server::ExternalServer;

/// Settings and resources that all runs share.
#[derive(Debug)]
pub(super) struct Drill<'a> {
    pub(super) settings: &'a Settings,
    pub(super) clients: u32,
    /// Addresses that the clients connect from, in turn; `None` for one that the system chooses.
    pub(super) sources: &'a [Option<Ipv4Addr>],
    pub(super) listen_backlog: u32,
    /// The server of --url; `None` for that of the drill.
    pub(super) external: Option<&'a ExternalServer>,
    pub(super) command_clients: Option<&'a CommandClients>,
    pub(super) runtime: &'a Runtime,
    pub(super) timer_lag: &'a TimerLag,
    pub(super) interrupt: &'a Interrupt,
    pub(super) term: &'a Term,
}

/// Time between the last initial connection and the start of the storm.
pub(super) const SETTLE: Duration = Duration::from_millis(500);

/// Why a run has no result.
#[derive(Debug)]
pub(super) enum RunError {
    /// By Ctrl-C or SIGTERM: the report has the runs that have finished.
    Interrupted,
    Failed(CliError),
}

impl From<CliError> for RunError {
    fn from(error: CliError) -> Self {
        Self::Failed(error)
    }
}

impl Drill<'_> {
    /// Returns the settings of the server that is killed: at an address that the system chooses, and without a limit,
    /// since only the restarted server is measured.
    pub(super) fn first_server(&self) -> ServeArgs {
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        ServeArgs {
            address,
            listen_backlog: self.listen_backlog,
            rate: None,
            backlog: 1,
            since: 0,
            record: 0,
            forward: None,
        }
    }

    /// Sleeps for `duration`; fails as soon as the drill is interrupted.
    pub(super) fn sleep(&self, duration: Duration) -> Result<(), RunError> {
        let started = Instant::now();
        loop {
            if self.interrupt.is_requested() {
                return Err(RunError::Interrupted);
            }
            let left = duration.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(TICK));
        }
    }
}
