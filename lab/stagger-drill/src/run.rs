//! A run with the drill's own clients.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use http::Uri;
use stagger_core::Policy;
use stagger_report::progress::ProgressLine;
use stagger_sim::storm::{Measurements, ServerCounts};
use stagger_terminal::output::error::CliError;

use super::args::Settings;
use super::drill::{Drill, RunError, SETTLE};
use super::fleet::{ClientConfig, Fleet, PROBES, Snapshot};
use super::log::ClientTrace;
use super::machine::{CpuTicks, LATE_S, TICK, TICKS_PER_SECOND, TcpCounters, saturation, warnings};
use super::observed::{Doubts, Observed, Run};
use super::serve::ServeArgs;
use super::server::{ExternalServer, Server};

/// Time without a new connection after which connecting has failed.
const CONNECT_STALL: Duration = Duration::from_secs(15);
/// Time that the user has to restart an external server.
const RESTART_TIMEOUT: Duration = Duration::from_secs(600);
/// Connect timeout, in addition to the time that a full backlog takes to drain.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl Drill<'_> {
    /// Runs the drill with its own clients and one policy.
    pub(super) fn run_own_clients(&self, name: &str, policy: &Policy) -> Result<Run, RunError> {
        let own = match self.external {
            Some(_) => None,
            None => Some(Server::start(self.first_server().to_words())?),
        };
        let (uri, address) = match (self.external, &own) {
            (Some(external), _) => (external.uri.clone(), external.address),
            (None, Some(server)) => (local(server.address)?, server.address),
            (None, None) => return Err(CliError::usage("no server to connect to").into()),
        };
        let drain_time = Duration::try_from_secs_f64(f64::from(self.settings.backlog) / self.settings.rate);
        let config = ClientConfig {
            uri,
            address,
            policy: healthy_at_once(policy)?,
            connect_timeout: CONNECT_TIMEOUT.saturating_add(drain_time.unwrap_or_default()),
        };
        let fleet = Fleet::new(self.runtime, config, self.clients, self.sources, self.settings.seed);
        let run = self.storm_and_report(name, policy, &fleet, own);
        fleet.end(self.runtime);
        run
    }

    /// Runs the storm, and puts together what the clients and the server recorded.
    fn storm_and_report(
        &self,
        name: &str,
        policy: &Policy,
        fleet: &Fleet,
        mut own: Option<Server>,
    ) -> Result<Run, RunError> {
        let storm = self.storm(name, fleet, &mut own)?;
        // Read the logs before the server ends, which the clients would record as another loss.
        let traces: Vec<ClientTrace> = fleet.logs.iter().filter_map(|log| log.trace(storm.started)).collect();
        let server_counts = own.map(Server::report).transpose()?;
        Ok(self.finish_run(name, policy, fleet, &storm, traces, server_counts))
    }

    /// Connects all clients, kills and restarts the server, and waits until all clients have reconnected:
    ///
    /// ```text
    /// probes, then all connect → SETTLE → kill → downtime → start again → all are back, or the horizon
    /// ```
    ///
    /// The user restarts an external server, so its downtime is not known here; the storm then begins with the first
    /// connection that is lost.
    fn storm(&self, name: &str, fleet: &Fleet, own: &mut Option<Server>) -> Result<StormRecord, RunError> {
        let mut progress = ProgressLine::new(self.term);
        self.connect(name, fleet, &mut progress)?;
        self.sleep(SETTLE)?;
        let counters = TcpCounters::read();
        self.timer_lag.take();
        let mut load: Vec<CpuTicks> = CpuTicks::read().into_iter().collect();
        let restart_at = Instant::now();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
        let mut restarting = None;
        let down = match (own.take(), self.external) {
            (Some(server), _) => {
                let address = server.address;
                server.kill()?;
                self.sleep(self.settings.down.saturating_sub(restart_at.elapsed()))?;
                let Settings { rate, backlog, .. } = *self.settings;
                let args = ServeArgs { address, rate: Some(rate), backlog, since, ..self.first_server() };
                *own = Some(Server::start(args.to_words())?);
                Some(restart_at.elapsed())
            }
            (None, external) => {
                restarting = external.map(ExternalServer::restart_server).transpose()?.flatten();
                None
            }
        };
        let started = match down {
            Some(_) => restart_at,
            None => self.wait_for_first_loss(name, fleet, restart_at, restarting.as_mut(), &mut progress)?,
        };
        self.wait_for_recovery(name, fleet, started, &mut load, &mut progress)?;
        if let Some(mut command) = restarting {
            succeeded(command.wait().map_err(cannot_wait)?)?;
        }
        Ok(StormRecord {
            started,
            down,
            counters: TcpCounters::read().since(&counters),
            busiest: CpuTicks::busiest(&load, TICKS_PER_SECOND),
        })
    }

    /// Waits until all clients are connected for the first time.
    fn connect(&self, name: &str, fleet: &Fleet, progress: &mut ProgressLine) -> Result<(), RunError> {
        let (mut before, mut changed, mut is_parallel) = (Snapshot::default(), Instant::now(), false);
        loop {
            let now = fleet.status.snapshot();
            if now.connected >= u64::from(self.clients) {
                return Ok(());
            }
            if !is_parallel && now.connected >= PROBES.min(self.clients as usize) as u64 {
                fleet.allow_parallel_connects();
                is_parallel = true;
            }
            if now.connected > before.connected {
                changed = Instant::now();
            }
            if now.gave_up > 0 || changed.elapsed() > CONNECT_STALL {
                let cause = fleet.status.first_failure().unwrap_or_else(|| "no connection was established".to_owned());
                return Err(CliError::usage(format_args!(
                    "only {} of {} clients could connect initially: {cause}",
                    now.connected, self.clients,
                ))
                .into());
            }
            progress.update(|| {
                now.line(&format!("{name}: connecting"), u64::from(self.clients), &before, TICKS_PER_SECOND as f64)
            });
            before = now;
            self.sleep(if is_parallel { TICK } else { TICK / 20 })?;
        }
    }

    /// Waits until the external server is restarted; returns when the first connection was lost.
    fn wait_for_first_loss(
        &self,
        name: &str,
        fleet: &Fleet,
        since: Instant,
        mut restarting: Option<&mut Child>,
        progress: &mut ProgressLine,
    ) -> Result<Instant, RunError> {
        loop {
            // A restart command that has failed restarts nothing; one that has succeeded may take effect later.
            if let Some(command) = &mut restarting
                && let Some(status) = command.try_wait().map_err(cannot_wait)?
            {
                succeeded(status)?;
            }
            if let Some((first, _)) = fleet.lost(since) {
                return Ok(first);
            }
            if since.elapsed() > RESTART_TIMEOUT {
                return Err(CliError::usage(
                    "no connection was lost within ten minutes; restart the server when prompted",
                )
                .into());
            }
            let now = fleet.status.snapshot();
            progress.update(|| {
                now.line(&format!("{name}: waiting for the server to restart"), u64::from(self.clients), &now, 0.0)
            });
            self.sleep(TICK)?;
        }
    }

    /// Waits until all clients have reconnected or given up, or the horizon is reached.
    fn wait_for_recovery(
        &self,
        name: &str,
        fleet: &Fleet,
        started: Instant,
        load: &mut Vec<CpuTicks>,
        progress: &mut ProgressLine,
    ) -> Result<(), RunError> {
        let clients = u64::from(self.clients);
        let (mut before, mut settled) = (fleet.status.snapshot(), None);
        while started.elapsed() < self.settings.horizon {
            load.extend(CpuTicks::read());
            let now = fleet.status.snapshot();
            let text = format!("{name}: storm, {:.1}s", started.elapsed().as_secs_f64());
            progress.update(|| now.line(&text, clients, &before, TICKS_PER_SECOND as f64));
            before = now;
            if now.connected + now.gave_up >= clients {
                // Some connections may survive the restart of an external server.
                let since = *settled.get_or_insert_with(Instant::now);
                if now.lost >= clients || since.elapsed() > Duration::from_secs(5) {
                    break;
                }
            } else {
                settled = None;
            }
            self.sleep(TICK)?;
        }
        Ok(())
    }

    fn finish_run(
        &self,
        name: &str,
        policy: &Policy,
        fleet: &Fleet,
        storm: &StormRecord,
        traces: Vec<ClientTrace>,
        server_counts: Option<ServerCounts>,
    ) -> Run {
        let disconnect_window = match fleet.lost(storm.started) {
            Some((_, last)) => last - storm.started,
            None => Duration::ZERO,
        };
        // The downtime of an external server is known only from its clients.
        let down = match storm.down {
            Some(down) => Some(down),
            None => fleet.first_reconnect(storm.started).map(|reconnect| reconnect - storm.started),
        };
        let (min, max) = fleet.round_trip();
        let mut measured = Measurements::default();
        // Half of the round trip.
        (measured.one_way_min_s, measured.one_way_max_s) = (min.as_secs_f64() / 2.0, max.as_secs_f64() / 2.0);
        measured.disconnect_window_s = disconnect_window.as_secs_f64();
        measured.down_s = down.map(|down| down.as_secs_f64());
        measured.server = server_counts;
        [measured.listen_overflows, measured.listen_drops, measured.syn_retransmits, measured.segments_retransmitted] =
            storm.counters.0;
        measured.max_timer_delay_s = self.timer_lag.take().as_secs_f64();
        measured.peak_cpu_ratio = storm.busiest;
        measured.warnings = warnings(&measured, LATE_S, "lower --clients");
        let exhausted = fleet.status.exhausted();
        if exhausted > 0 {
            measured.warnings.push(format!(
                "{exhausted} attempts failed for lack of local ports or file descriptors (lower --clients)"
            ));
        }
        let machine = saturation(measured.peak_cpu_ratio, "lower --clients");
        let doubts = Doubts { clients: Vec::new(), machine };
        if traces.len() < self.clients as usize {
            let unaffected = self.clients as usize - traces.len();
            measured.warnings.push(format!("{unaffected} clients never lost their connections"));
        }
        Run { name: name.to_owned(), policy: *policy, observed: Observed::ByClients(traces), measured, doubts }
    }
}

/// What the drill itself recorded during the storm.
#[derive(Debug)]
struct StormRecord {
    started: Instant,
    down: Option<Duration>,
    counters: TcpCounters,
    busiest: Option<f64>,
}

fn cannot_wait(error: io::Error) -> CliError {
    CliError::io("--restart-cmd: cannot wait for the command", error)
}

/// Checks the exit status of the restart command.
fn succeeded(status: ExitStatus) -> Result<(), CliError> {
    if status.success() { Ok(()) } else { Err(CliError::usage(format_args!("--restart-cmd failed: {status}"))) }
}

/// Returns the policy with `stable_after` set to zero. Otherwise each run would have to wait until its connections
/// count as healthy. Every loss is spread in any case; if the server dies again during the storm, the counts of the
/// clients that were back start again.
fn healthy_at_once(policy: &Policy) -> Result<Policy, CliError> {
    policy.to_builder().stable_after(Duration::ZERO).build().map_err(CliError::usage)
}

fn local(address: SocketAddr) -> Result<Uri, CliError> {
    let text = format!("ws://{address}/");
    text.parse().map_err(|error| CliError::usage(format_args!("{text}: {error}")))
}
