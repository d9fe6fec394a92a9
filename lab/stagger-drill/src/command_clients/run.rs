//! A run with the clients of a command.

use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::net::{TcpListener, TcpStream};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use stagger_core::Policy;
use stagger_report::progress::ProgressLine;
use stagger_sim::storm::Measurements;
use stagger_terminal::output::error::CliError;
use stagger_terminal::plot::Unit;

use super::load::ClientLoad;
use super::program::{CommandLine, Program};
use crate::args::CommandClients;
use crate::drill::{Drill, RunError, SETTLE};
use crate::machine::{LATE_S, TICK, TcpCounters, saturation, warnings};
use crate::observed::{Doubts, Observed, Run, ServerView};
use crate::serve::{ServeArgs, Served, ServerStatus};
use crate::server::Server;

/// Number of attempts and of connections whose times are recorded.
const RECORDED: u32 = 1 << 20;
/// Number of TCP connections that measure the latency.
const PROBES: usize = 50;
/// Time without a new connection after which connecting has failed.
const CONNECT_STALL: Duration = Duration::from_secs(15);
/// Time that a command of a server has until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(15);
/// Time that all clients stay connected before the storm counts as over.
const RECOVERED: Duration = Duration::from_secs(1);

/// Runs the drill with the clients of a command and one policy.
pub(crate) fn run(drill: &Drill<'_>, clients: &CommandClients, name: &str, policy: &Policy) -> Result<Run, RunError> {
    let mut progress = ProgressLine::new(drill.term);
    let upstream = clients.server.as_ref().map(|command| Upstream::start(drill, command)).transpose()?;
    let forward = upstream.as_ref().map(|upstream| upstream.address);
    let first = ServeArgs { forward, ..drill.first_server() };
    let mut server = Server::start(first.to_words())?;
    let one_way = one_way(server.address)?;
    let mut storm = Storm { drill, clients, name, upstream, programs: Vec::new() };
    storm.start_clients(server.address, policy)?;
    storm.connect(&mut server, &mut progress)?;
    // Otherwise the clients would count the attempts that connected them.
    storm.stay_connected(&mut server, SETTLE.max(policy.stable_after().unwrap_or_default()), &mut progress)?;

    let counters = TcpCounters::read();
    drill.timer_lag.take();
    let mut load = ClientLoad::default();
    load.sample(&storm.processes());
    let started = Instant::now();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
    let address = server.address;
    server.kill()?;
    let disconnect_window = started.elapsed();
    drill.sleep(drill.settings.down.saturating_sub(started.elapsed()))?;
    let (rate, backlog) = (Some(drill.settings.rate), drill.settings.backlog);
    let mut server = Server::start(ServeArgs { address, rate, backlog, since, record: RECORDED, ..first }.to_words())?;
    let down = started.elapsed();
    storm.recover(&mut server, started, &mut load, &mut progress)?;
    let served: Served = server.report()?;

    let mut measured = Measurements::default();
    (measured.one_way_min_s, measured.one_way_max_s) = (one_way.0.as_secs_f64(), one_way.1.as_secs_f64());
    measured.disconnect_window_s = disconnect_window.as_secs_f64();
    measured.down_s = Some(down.as_secs_f64());
    [measured.listen_overflows, measured.listen_drops, measured.syn_retransmits, measured.segments_retransmitted] =
        TcpCounters::read().since(&counters).0;
    measured.max_timer_delay_s = drill.timer_lag.take().as_secs_f64();
    measured.peak_cpu_ratio = load.peak_cpu_ratio();
    measured.client = Some(clients.command.text.clone());
    measured.warnings = warnings(&measured, LATE_S, "lower --clients");
    measured.warnings.extend(excess(drill.clients, &served));
    let machine = saturation(measured.peak_cpu_ratio, "lower --clients");
    let doubts = Doubts { clients: load.doubts(), machine };
    let view = ServerView::of_server(&served);
    measured.server = Some(served.counts);
    Ok(Run { name: name.to_owned(), policy: *policy, observed: Observed::ByServer(view), measured, doubts })
}

/// Returns a half of the 10th and the 90th percentile of the round trips of TCP to the server.
fn one_way(address: SocketAddr) -> Result<(Duration, Duration), CliError> {
    let round_trip = |_| {
        let started = Instant::now();
        TcpStream::connect(address).map(|_| started.elapsed())
    };
    let times: std::io::Result<Vec<Duration>> = (0..PROBES).map(round_trip).collect();
    let mut times = times.map_err(|source| CliError::io("cannot connect to the drill's server", source))?;
    times.sort_unstable();
    Ok((times[PROBES / 10] / 2, times[PROBES * 9 / 10] / 2))
}

/// Returns a warning if the server recorded more than the figures contain.
fn excess(clients: u32, served: &Served) -> Option<String> {
    let count = |number: usize| Unit::Count.label(number as f64);
    if served.counts.arrived > u64::from(RECORDED) {
        return Some(format!("the times of the first {} attempts were recorded only", count(RECORDED as usize)));
    }
    let repeated = served.connected_at_us.len().saturating_sub(clients as usize);
    if repeated == 0 {
        return None;
    }
    Some(format!("{} connections were lost and made again during the storm", count(repeated)))
}

/// The clients' own server, behind a relay.
#[derive(Debug)]
struct Upstream {
    program: Program,
    address: SocketAddr,
}

impl Upstream {
    /// Starts the server with a free port in `PORT`, and waits until it listens there.
    fn start(drill: &Drill<'_>, command: &CommandLine) -> Result<Self, RunError> {
        let address = free_address().ok_or_else(|| {
            CliError::io("--server: cannot find a free port for the server", std::io::ErrorKind::AddrInUse)
        })?;
        let mut program = Program::start(command, &[("PORT", address.port().to_string())])?;
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = program.ended()? {
                program.end();
                return Err(program
                    .error(format_args!("ended with {status} before it listened on port {}", address.port()))
                    .into());
            }
            if started.elapsed() > LISTEN_TIMEOUT {
                program.end();
                let wanted = format!(
                    "does not listen on 127.0.0.1:{} after {}; it must take the port from the environment variable \
                     PORT",
                    address.port(),
                    Unit::Seconds.label(LISTEN_TIMEOUT.as_secs_f64())
                );
                return Err(program.error(wanted).into());
            }
            drill.sleep(TICK / 4)?;
        }
        Ok(Self { program, address })
    }
}

/// Returns a free address, whose port is below the range from which systems take ports for outgoing connections: it
/// stays free until the server listens, although other programs connect meanwhile.
fn free_address() -> Option<SocketAddr> {
    const PORTS: core::ops::Range<u16> = 20_000..32_768;
    // Drills that start at the same time begin at different ports.
    let first = std::process::id() as usize * 97 % PORTS.len();
    let ports = PORTS.cycle().skip(first).take(PORTS.len());
    ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).find(|address| TcpListener::bind(address).is_ok())
}

/// A run with its processes.
struct Storm<'a> {
    drill: &'a Drill<'a>,
    clients: &'a CommandClients,
    name: &'a str,
    upstream: Option<Upstream>,
    programs: Vec<Program>,
}

impl Storm<'_> {
    /// Starts the processes of the clients.
    fn start_clients(&mut self, server: SocketAddr, policy: &Policy) -> Result<(), CliError> {
        let (all, processes) = (self.drill.clients, self.clients.processes.min(self.drill.clients));
        let seed = self.drill.settings.seed;
        for process in 0..u64::from(processes) {
            // The first processes have one client more, if they cannot be divided equally.
            let first_of = |process: u64| (u64::from(all) * process).div_ceil(u64::from(processes));
            let (first, next) = (first_of(process), first_of(process + 1));
            let variables = [
                ("STAGGER_DRILL_URL", format!("ws://{server}/")),
                ("STAGGER_DRILL_CLIENTS", (next - first).to_string()),
                ("STAGGER_DRILL_FIRST", first.to_string()),
                ("STAGGER_DRILL_SEED", seed.get().to_string()),
                ("STAGGER_DRILL_POLICY", policy.to_string()),
            ];
            self.programs.push(Program::start(&self.clients.command, &variables)?);
        }
        Ok(())
    }

    /// Waits until every client is connected.
    fn connect(&mut self, server: &mut Server, progress: &mut ProgressLine) -> Result<(), RunError> {
        let wanted = u64::from(self.drill.clients);
        let (mut most, mut changed) = (0, Instant::now());
        loop {
            let now = server.status()?;
            self.check_excess(now)?;
            if now.active == wanted {
                return Ok(());
            }
            if now.active > most {
                (most, changed) = (now.active, Instant::now());
            }
            let attempts = now.arrived.saturating_sub(PROBES as u64);
            let state = format!("{} of {} clients had connected, with {} attempts", now.active, wanted, attempts);
            if let Some((at, status)) = self.ended()? {
                return Err(self.error(at, format_args!("ended with {status} when {state}")));
            }
            if changed.elapsed() > CONNECT_STALL {
                let stall = Unit::Seconds.label(CONNECT_STALL.as_secs_f64());
                let why = format!(
                    "has opened no connection for {stall} when {state}; it must open STAGGER_DRILL_CLIENTS \
                                   WebSockets to STAGGER_DRILL_URL, and keep them"
                );
                return Err(self.error(0, why));
            }
            progress.update(|| format!("{}: connecting: {} of {wanted} connected", self.name, now.active));
            self.drill.sleep(TICK / 2)?;
        }
    }

    /// Waits for `time`, in which every client must stay connected.
    fn stay_connected(
        &mut self,
        server: &mut Server,
        time: Duration,
        progress: &mut ProgressLine,
    ) -> Result<(), RunError> {
        let since = Instant::now();
        loop {
            let now = server.status()?;
            self.check_excess(now)?;
            let wanted = u64::from(self.drill.clients);
            if now.active < wanted {
                let lost = wanted - now.active;
                let after = Unit::Seconds.label((since.elapsed().as_secs_f64() * 10.0).round() / 10.0);
                return Err(self.error(
                    0,
                    format_args!("closed {lost} of {wanted} connections within {after}; it must keep them"),
                ));
            }
            if since.elapsed() >= time {
                return Ok(());
            }
            progress.update(|| format!("{}: all connected, waiting for connections to count as stable", self.name));
            self.drill.sleep((time - since.elapsed()).min(TICK))?;
        }
    }

    /// Waits until every client has connected again, or all processes have ended, or the horizon is reached.
    fn recover(
        &mut self,
        server: &mut Server,
        started: Instant,
        load: &mut ClientLoad,
        progress: &mut ProgressLine,
    ) -> Result<(), RunError> {
        let wanted = u64::from(self.drill.clients);
        let mut recovered = None;
        while started.elapsed() < self.drill.settings.horizon {
            load.sample(&self.processes());
            let now = server.status()?;
            self.check_excess(now)?;
            if now.active == wanted {
                let since = *recovered.get_or_insert_with(Instant::now);
                if since.elapsed() >= RECOVERED {
                    break;
                }
            } else {
                recovered = None;
                // Clients that give up may end; a process that fails has no figures.
                if let Some((at, status)) = self.failed()? {
                    let state = format!("{} of {wanted} clients were back", now.active);
                    return Err(self.error(at, format_args!("ended with {status} during the storm, when {state}")));
                }
                if self.has_ended()? {
                    break;
                }
            }
            let time = started.elapsed().as_secs_f64();
            progress.update(|| {
                format!(
                    "{}: storm, {time:.1}s: {} of {wanted} connected, {} attempts",
                    self.name, now.active, now.arrived
                )
            });
            self.drill.sleep(TICK)?;
        }
        Ok(())
    }

    fn check_excess(&mut self, now: ServerStatus) -> Result<(), RunError> {
        let wanted = u64::from(self.drill.clients);
        if now.active <= wanted {
            return Ok(());
        }
        let held = now.active;
        let why = format!(
            "holds {held} connections at once, and {wanted} were asked for; STAGGER_DRILL_CLIENTS is the number of \
             clients of each process"
        );
        Err(self.error(0, why))
    }

    /// Returns the first process that has ended, of the clients or the server.
    fn ended(&mut self) -> Result<Option<(usize, std::process::ExitStatus)>, RunError> {
        self.check_upstream()?;
        for (at, program) in self.programs.iter_mut().enumerate() {
            if let Some(status) = program.ended()? {
                return Ok(Some((at, status)));
            }
        }
        Ok(None)
    }

    /// Returns the first process of the clients that has failed.
    fn failed(&mut self) -> Result<Option<(usize, std::process::ExitStatus)>, RunError> {
        self.check_upstream()?;
        for (at, program) in self.programs.iter_mut().enumerate() {
            if let Some(status) = program.ended()?
                && !status.success()
            {
                return Ok(Some((at, status)));
            }
        }
        Ok(None)
    }

    /// Returns the numbers of the clients' processes.
    fn processes(&self) -> Vec<Option<u32>> {
        self.programs.iter().map(|program| program.process).collect()
    }

    fn has_ended(&mut self) -> Result<bool, RunError> {
        let mut ended = true;
        for program in &mut self.programs {
            ended &= program.ended()?.is_some();
        }
        Ok(ended)
    }

    fn check_upstream(&mut self) -> Result<(), RunError> {
        let Some(upstream) = &mut self.upstream else { return Ok(()) };
        let Some(status) = upstream.program.ended()? else { return Ok(()) };
        upstream.program.end();
        Err(upstream.program.error(format_args!("ended with {status} while clients used it")).into())
    }

    /// Ends a process, and returns an error about it with the end of its output.
    fn error(&mut self, process: usize, what: impl core::fmt::Display) -> RunError {
        let program = &mut self.programs[process];
        program.end();
        program.error(what).into()
    }
}
