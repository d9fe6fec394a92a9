use core::net::Ipv4Addr;
use core::time::Duration;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Instant, SystemTime};

use http::Uri;
use stagger_core::Policy;
use stagger_sim::storm::{Measurements, ServerCounts};
use tokio::runtime::Runtime;

use super::client::Manner;
use super::counters::{Counters, Processors};
use super::doubt::warnings;
use super::fleet::{Fleet, SCOUTS};
use super::live::Look;
use super::log::Course;
use super::server::{Open, Orders, Server};
use super::settings::Settings;
use super::target::Theirs;
use super::timers::Lateness;
use crate::error::CliError;
use crate::output::say;
use crate::storm::{Interrupt, Progress};
use crate::term::Term;

/// What all runs have in common.
#[derive(Debug)]
pub(super) struct Ground<'a> {
    pub(super) settings: &'a Settings,
    pub(super) clients: u32,
    pub(super) sources: &'a [Option<Ipv4Addr>],
    pub(super) listen_backlog: u32,
    pub(super) theirs: Option<&'a Theirs>,
    pub(super) runtime: &'a Runtime,
    pub(super) lateness: &'a Lateness,
    pub(super) interrupt: &'a Interrupt,
    pub(super) term: &'a Term,
}

/// What came of one policy.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) policy: Policy,
    pub(super) courses: Vec<Course>,
    pub(super) measured: Measurements,
}

/// Somebody wants to stop.
#[derive(Debug)]
enum Halt {
    Interrupted,
    Failed(CliError),
}

impl From<CliError> for Halt {
    fn from(error: CliError) -> Self {
        Self::Failed(error)
    }
}

/// How often is looked how far the clients are.
const TICK: Duration = Duration::from_millis(100);
/// How many of these are a second.
const TICKS: usize = 10;
/// So long everyone is connected before anything happens.
const QUIET: Duration = Duration::from_millis(500);
/// So long nothing changes before something is wrong.
const STALLED: Duration = Duration::from_secs(15);
/// So long somebody may take to restart their server.
const RESTART: Duration = Duration::from_secs(600);
/// So long a policy's longest queue, and what a slow machine needs on top.
const CONNECT: Duration = Duration::from_secs(10);

impl Ground<'_> {
    /// One run; `None` if somebody wants to stop.
    ///
    /// # Errors
    /// The server cannot be started or reached, or never goes away.
    pub(super) fn run(&self, name: &str, policy: &Policy) -> Result<Option<Run>, CliError> {
        match self.make(name, policy) {
            Ok(run) => Ok(Some(run)),
            Err(Halt::Interrupted) => Ok(None),
            Err(Halt::Failed(error)) => Err(error),
        }
    }

    fn make(&self, name: &str, policy: &Policy) -> Result<Run, Halt> {
        let mut own = match self.theirs {
            Some(_) => None,
            None => Some(Server::start(&Orders::anywhere(self.listen_backlog))?),
        };
        let (uri, address) = match (self.theirs, &own) {
            (Some(theirs), _) => (theirs.uri.clone(), theirs.address),
            (None, Some(server)) => (local(server.address())?, server.address()),
            (None, None) => return Err(CliError::usage("there is no server").into()),
        };
        let queue = Duration::try_from_secs_f64(f64::from(self.settings.backlog) / self.settings.rate);
        let manner = Manner {
            uri,
            address,
            policy: at_once_healthy(policy)?,
            connect_timeout: CONNECT.saturating_add(queue.unwrap_or_default()),
        };
        let fleet = Fleet::new(self.runtime, manner, self.clients, self.sources, self.settings.seed);
        let stormed = self.storm(name, &fleet, &mut own);
        let run = stormed.and_then(|storm| {
            // The clients are counted before the server ends, which they would take for another loss.
            let courses: Vec<Course> = fleet.logs().iter().filter_map(|log| log.course(storm.began)).collect();
            let served = own.take().map(Server::report).transpose()?;
            Ok(self.told(name, policy, &fleet, &storm, courses, served))
        });
        fleet.end(self.runtime);
        run
    }

    /// Connects everyone, has the server go and come back, and waits until everyone is back.
    fn storm(&self, name: &str, fleet: &Fleet, own: &mut Option<Server>) -> Result<Storm, Halt> {
        let mut progress = Progress::new(self.term);
        self.connect(name, fleet, &mut progress)?;
        self.pause(QUIET)?;
        let counters = Counters::read();
        self.lateness.take();
        let mut load = Load::new();
        let (asked, wall) = (Instant::now(), SystemTime::now());
        let mut restarting = None;
        let down = match (own.take(), self.theirs) {
            (Some(server), _) => {
                let address = server.address();
                server.kill()?;
                self.pause(self.settings.down.saturating_sub(asked.elapsed()))?;
                let Settings { rate, backlog, .. } = *self.settings;
                let door = Open::Narrow { rate, backlog, since: wall };
                *own = Some(Server::start(&Orders { address, listen_backlog: self.listen_backlog, door })?);
                Some(asked.elapsed())
            }
            (None, theirs) => {
                restarting = theirs.map(Theirs::restarted).transpose()?.flatten();
                None
            }
        };
        let began = match down {
            Some(_) => asked,
            None => self.first_loss(name, fleet, asked, &mut progress)?,
        };
        self.watch(name, fleet, began, &mut load, &mut progress)?;
        if let Some(mut command) = restarting {
            let status = command.wait().map_err(|error| CliError::io("--restart-cmd: cannot wait for it", error))?;
            if !status.success() {
                return Err(CliError::usage(format_args!("--restart-cmd failed: {status}")).into());
            }
        }
        Ok(Storm { began, down, counters: Counters::read().since(&counters), busiest: load.busiest() })
    }

    /// Waits until everyone is connected for the first time.
    fn connect(&self, name: &str, fleet: &Fleet, progress: &mut Progress) -> Result<(), Halt> {
        let (mut before, mut changed, mut is_open) = (Look::default(), Instant::now(), false);
        loop {
            let now = fleet.live.look();
            if now.connected >= u64::from(self.clients) {
                return Ok(());
            }
            if !is_open && now.connected >= SCOUTS.min(self.clients as usize) as u64 {
                fleet.open_the_gate();
                is_open = true;
            }
            if now.connected > before.connected {
                changed = Instant::now();
            }
            if now.gave_up > 0 || changed.elapsed() > STALLED {
                let why = fleet.live.why().unwrap_or_else(|| "nothing comes".to_owned());
                return Err(CliError::usage(format_args!(
                    "{} of {} clients can connect before anything has happened, and then: {why}",
                    now.connected, self.clients,
                ))
                .into());
            }
            progress.tell(|| now.line(&format!("{name}: connecting"), u64::from(self.clients), &before, TICKS as f64));
            before = now;
            self.pause(if is_open { TICK } else { TICK / 20 })?;
        }
    }

    /// Waits until somebody has restarted their server.
    fn first_loss(&self, name: &str, fleet: &Fleet, since: Instant, progress: &mut Progress) -> Result<Instant, Halt> {
        loop {
            if let Some((first, _)) = fleet.lost(since) {
                return Ok(first);
            }
            if since.elapsed() > RESTART {
                return Err(CliError::usage("nobody has lost a connection for ten minutes; restart the server").into());
            }
            let now = fleet.live.look();
            progress.tell(|| now.line(&format!("{name}: waiting for the restart"), u64::from(self.clients), &now, 0.0));
            self.pause(TICK)?;
        }
    }

    /// Waits until everyone is back or has given up, or it is too late.
    fn watch(
        &self,
        name: &str,
        fleet: &Fleet,
        began: Instant,
        load: &mut Load,
        progress: &mut Progress,
    ) -> Result<(), Halt> {
        let everyone = u64::from(self.clients);
        let (mut before, mut settled) = (fleet.live.look(), None);
        while began.elapsed() < self.settings.horizon {
            load.tick();
            let now = fleet.live.look();
            let text = format!("{name}: storm, {:.1}s", began.elapsed().as_secs_f64());
            progress.tell(|| now.line(&text, everyone, &before, TICKS as f64));
            before = now;
            if now.connected + now.gave_up >= everyone {
                // Of a server that is not ours some may keep their connection.
                let since = *settled.get_or_insert_with(Instant::now);
                if now.lost >= everyone || since.elapsed() > Duration::from_secs(5) {
                    break;
                }
            } else {
                settled = None;
            }
            self.pause(TICK)?;
        }
        Ok(())
    }

    fn pause(&self, length: Duration) -> Result<(), Halt> {
        let began = Instant::now();
        loop {
            if self.interrupt.came() {
                return Err(Halt::Interrupted);
            }
            let left = length.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            sleep(left.min(TICK));
        }
    }

    fn told(
        &self,
        name: &str,
        policy: &Policy,
        fleet: &Fleet,
        storm: &Storm,
        courses: Vec<Course>,
        served: Option<ServerCounts>,
    ) -> Run {
        let lost_within = fleet.lost(storm.began).map_or(Duration::ZERO, |(_, last)| last - storm.began);
        // Of a server that is not ours nobody knows more than its clients.
        let down = storm.down.or_else(|| fleet.first_back(storm.began).map(|back| back - storm.began));
        let (least, most) = fleet.round_trip();
        let mut measured = Measurements::default();
        // There and back.
        (measured.one_way_min_s, measured.one_way_max_s) = (least.as_secs_f64() / 2.0, most.as_secs_f64() / 2.0);
        measured.disconnect_window_s = lost_within.as_secs_f64();
        measured.down_s = down.map(|down| down.as_secs_f64());
        measured.server = served;
        measured.listen_overflows = storm.counters.listen_overflows;
        measured.listen_drops = storm.counters.listen_drops;
        measured.syn_retransmits = storm.counters.syn_retransmits;
        measured.segments_retransmitted = storm.counters.segments_retransmitted;
        measured.max_timer_delay_s = self.lateness.take().as_secs_f64();
        measured.peak_cpu_ratio = storm.busiest;
        measured.warnings = warnings(&measured);
        let exhausted = fleet.live.exhausted();
        if exhausted > 0 {
            measured
                .warnings
                .push(format!("{exhausted} attempts failed for want of ports or descriptors (lower --clients)"));
        }
        if courses.len() < self.clients as usize {
            let kept = self.clients as usize - courses.len();
            measured.warnings.push(format!("{kept} clients never lost their connection"));
        }
        Run { name: name.to_owned(), policy: *policy, courses, measured }
    }
}

/// What is known when everyone is back.
#[derive(Debug)]
struct Storm {
    began: Instant,
    down: Option<Duration>,
    counters: Counters,
    busiest: Option<f64>,
}

/// How busy the processors were, tenth of a second by tenth of a second.
#[derive(Debug)]
struct Load {
    looks: Vec<Processors>,
}

impl Load {
    fn new() -> Self {
        Self { looks: Processors::read().into_iter().collect() }
    }

    fn tick(&mut self) {
        self.looks.extend(Processors::read());
    }

    /// In the busiest of all seconds, or in all the time there was.
    fn busiest(&self) -> Option<f64> {
        let window = (TICKS + 1).min(self.looks.len());
        if window < 2 {
            return None;
        }
        self.looks.windows(window).map(|looks| looks[window - 1].busy_since(&looks[0])).reduce(f64::max)
    }
}

impl Theirs {
    /// Has it restarted, or asks somebody to.
    fn restarted(&self) -> Result<Option<Child>, CliError> {
        let Some(line) = &self.restart else {
            say(&format!("everyone is connected: now restart the server at {}", self.uri));
            return Ok(None);
        };
        let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        let child = Command::new(shell).args([flag, line]).spawn();
        child.map(Some).map_err(|error| CliError::io("--restart-cmd: cannot start it", error))
    }
}

/// The policy, for connections that are healthy however short they lived: otherwise each run would have to wait until they
/// are, and nothing else of the policy would show.
fn at_once_healthy(policy: &Policy) -> Result<Policy, CliError> {
    policy.to_builder().stable_after(Duration::ZERO).build().map_err(CliError::usage)
}

fn local(address: core::net::SocketAddr) -> Result<Uri, CliError> {
    let text = format!("ws://{address}/");
    text.parse().map_err(|error| CliError::usage(format_args!("{text}: {error}")))
}
