//! The clients of a drill: thousands of reconnect loops of `stagger-ws` in this process.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::StreamExt;
use http::{Request, Uri};
use stagger::Retrier;
use stagger_core::{Policy, Seed};
use stagger_sim::reconnect::ReconnectRecorder;
use stagger_terminal::plot::Unit;
use stagger_ws::{ConnectionError, ReconnectLoop, WebSocketConfig};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::log::{Event, EventLog};

/// The clients of a run, each a task.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) status: Arc<FleetStatus>,
    pub(super) logs: Vec<Arc<EventLog>>,
    connect_permits: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

/// Number of clients that connect first, one at a time, to measure the latency without load.
pub(super) const PROBES: usize = 50;

/// Number of the remaining clients that connect at the same time, so that the initial connections are not a storm.
const PARALLEL_CONNECTS: usize = 64;

impl Fleet {
    /// Starts to connect `clients` clients, the probes first.
    pub(super) fn new(
        runtime: &Runtime,
        config: ClientConfig,
        clients: u32,
        sources: &[Option<Ipv4Addr>],
        seed: Seed,
    ) -> Self {
        let config = Arc::new(config);
        let status = Arc::new(FleetStatus::default());
        // One permit: the probes connect one at a time.
        let connect_permits = Arc::new(Semaphore::new(1));
        let mut logs = Vec::with_capacity(clients as usize);
        let mut tasks = JoinSet::new();
        for (id, source) in (0..clients).zip(sources.iter().copied().cycle()) {
            let log = Arc::new(EventLog::default());
            logs.push(Arc::clone(&log));
            // The simulation gives its client of this number the same seed, so both draw the same delays.
            let seed = ReconnectRecorder::client_seed(seed, id);
            let client = client(config.clone(), seed, source, log, status.clone(), connect_permits.clone());
            tasks.spawn_on(client, runtime.handle());
        }
        Self { status, logs, connect_permits, tasks }
    }

    /// Lets many clients connect at the same time, once the probes are connected.
    pub(super) fn allow_parallel_connects(&self) {
        self.connect_permits.add_permits(PARALLEL_CONNECTS);
    }

    /// Returns the 10th and the 90th percentile of the duration of the probes' attempts.
    pub(super) fn round_trip(&self) -> (Duration, Duration) {
        let mut times: Vec<Duration> = self.logs.iter().take(PROBES).filter_map(|log| log.first_attempt()).collect();
        times.sort_unstable();
        let at = |tenth: usize| times.get(times.len() * tenth / 10).copied().unwrap_or_default();
        (at(1), at(9))
    }

    /// Returns when the first and the last connection were lost, of those lost since `since`.
    pub(super) fn lost(&self, since: Instant) -> Option<(Instant, Instant)> {
        let lost = || self.logs.iter().filter_map(|log| log.first(Event::Lost, since));
        Some((lost().min()?, lost().max()?))
    }

    /// Returns when the first client reconnected after `since`.
    pub(super) fn first_reconnect(&self, since: Instant) -> Option<Instant> {
        self.logs.iter().filter_map(|log| log.first(Event::Connected, since)).min()
    }

    /// Stops all clients and waits until they have ended.
    pub(super) fn end(mut self, runtime: &Runtime) {
        runtime.block_on(self.tasks.shutdown());
    }
}

/// What all clients have in common.
#[derive(Clone, Debug)]
pub(super) struct ClientConfig {
    pub(super) uri: Uri,
    /// Resolved address of `uri`.
    pub(super) address: SocketAddr,
    pub(super) policy: Policy,
    pub(super) connect_timeout: Duration,
}

/// Returns a configuration for thousands of idle connections on one machine: the default buffers of tungstenite take
/// 140 KB per connection.
pub(super) fn small_buffers() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(1 << 10).write_buffer_size(1 << 10)
}

/// Runs one client: a [`ReconnectLoop`] with the policy under test, as an application would use it, until it gives up.
pub(super) async fn client(
    config: Arc<ClientConfig>,
    seed: Seed,
    source: Option<Ipv4Addr>,
    log: Arc<EventLog>,
    status: Arc<FleetStatus>,
    connect_permits: Arc<Semaphore>,
) {
    let mut first = connect_permits.acquire().await.ok();
    let mut links = reconnect_loop(&config, seed, source, &log, &status);
    let record = |event| {
        log.record(event);
        status.record(event);
    };
    while let Ok(Some(mut link)) = links.next_connection().await {
        record(Event::Connected);
        drop(first.take());
        while let Some(Ok(_)) = link.next().await {}
        record(Event::Lost);
    }
    record(Event::GaveUp);
}

fn reconnect_loop(
    config: &ClientConfig,
    seed: Seed,
    source: Option<Ipv4Addr>,
    log: &Arc<EventLog>,
    status: &Arc<FleetStatus>,
) -> ReconnectLoop {
    let (uri, to) = (config.uri.clone(), config.address);
    // Each of the two closures that record something owns both.
    let sent = (Arc::clone(log), Arc::clone(status));
    let failed = sent.clone();
    ReconnectLoop::builder()
        .request(move |_| {
            let (log, status) = &sent;
            log.record(Event::Sent);
            status.record(Event::Sent);
            let request = Request::get(uri.clone()).body(());
            async move { Ok(request?) }
        })
        .connector(move |_| connect(to, source))
        .on_closed(move |closed| {
            let (log, status) = &failed;
            // The loss of an open connection has been recorded already.
            if log.is_trying() {
                log.record(Event::Failed);
                status.failed(&closed.cause);
            }
        })
        .retrier(Retrier::new(config.policy).seed(seed))
        .connect_timeout(config.connect_timeout)
        // All clients connect within a second, so their pings would be synchronized.
        .no_keepalive()
        .websocket_config(small_buffers())
        .reconnect_loop()
}

async fn connect(to: SocketAddr, from: Option<Ipv4Addr>) -> io::Result<TcpStream> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(from) = from {
        // Allows ports in TIME_WAIT to be reused.
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::new(IpAddr::V4(from), 0))?;
    }
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Progress of all clients. The clients update it, and the drill samples it ten times a second, so that observing it
/// does not slow them down.
#[derive(Debug, Default)]
pub(super) struct FleetStatus {
    /// Number of each [`Event`].
    counts: [AtomicU64; 5],
    /// Attempts that failed for lack of local ports or file descriptors.
    exhausted: AtomicU64,
    first_failure: Mutex<Option<String>>,
}

/// Values of [`FleetStatus`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) connected: u64,
    pub(super) lost: u64,
    pub(super) gave_up: u64,
    pub(super) attempts: u64,
    pub(super) failed: u64,
}

impl FleetStatus {
    /// Counts an event of a client; returns how many there were before.
    pub(super) fn record(&self, event: Event) -> u64 {
        self.counts[event as usize].fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a failed attempt, and keeps the cause of the first for an error message.
    pub(super) fn failed(&self, cause: &ConnectionError) {
        if let ConnectionError::Io(error) = cause
            && is_exhaustion(error)
        {
            self.exhausted.fetch_add(1, Ordering::Relaxed);
        }
        if self.record(Event::Failed) == 0 {
            *self.first_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause.to_string());
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let count = |event| self.counts[event as usize].load(Ordering::Relaxed);
        // The losses last: a connection that is lost in between must not count as connected.
        let (opened, lost) = (count(Event::Connected), count(Event::Lost));
        Snapshot {
            connected: opened.saturating_sub(lost),
            lost,
            gave_up: count(Event::GaveUp),
            attempts: count(Event::Sent),
            failed: count(Event::Failed),
        }
    }

    pub(super) fn exhausted(&self) -> u64 {
        self.exhausted.load(Ordering::Relaxed)
    }

    pub(super) fn first_failure(&self) -> Option<String> {
        self.first_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns whether this machine, rather than the server, ran out of resources.
fn is_exhaustion(error: &io::Error) -> bool {
    #[cfg(unix)]
    if [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE]
        .iter()
        .any(|full| error.raw_os_error() == Some(full.raw_os_error()))
    {
        return true;
    }
    matches!(error.kind(), ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse)
}

impl Snapshot {
    /// Returns the line that shows the progress, with the rate of attempts since the snapshot `before`.
    pub(super) fn line(&self, phase: &str, clients: u64, before: &Self, per_second: f64) -> String {
        let count = |number: u64| Unit::Count.label(number as f64);
        let rate = (self.attempts.saturating_sub(before.attempts)) as f64 * per_second;
        format!(
            "{phase}: {} of {} connected, {} attempts/s, {} failed",
            count(self.connected),
            count(clients),
            Unit::Count.label(rate.round()),
            count(self.failed),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_exhaustion_is_distinguished_from_a_server_failure() {
        let status = FleetStatus::default();
        for kind in [ErrorKind::ConnectionRefused, ErrorKind::AddrNotAvailable, ErrorKind::ConnectionReset] {
            status.failed(&ConnectionError::Io(Arc::new(kind.into())));
        }
        status.failed(&ConnectionError::Lost);
        assert_eq!((status.snapshot().failed, status.exhausted()), (4, 1));
        #[cfg(unix)]
        assert!(is_exhaustion(&rustix::io::Errno::MFILE.into()));
        assert!(status.first_failure().is_some_and(|cause| cause.contains("refused")), "{:?}", status.first_failure());
    }

    #[test]
    fn the_progress_line_shows_attempts_per_second() {
        let before = Snapshot { attempts: 100, ..Snapshot::default() };
        let now = Snapshot { connected: 1_234, attempts: 185, failed: 60, ..Snapshot::default() };
        assert_eq!(
            now.line("ours: storm", 3_000, &before, 10.0),
            "ours: storm: 1,234 of 3,000 connected, 850 attempts/s, 60 failed"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_client_can_bind_to_another_loopback_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for source in [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)] {
            let stream = runtime.block_on(connect(listener.local_addr().unwrap(), Some(source))).unwrap();
            assert_eq!(stream.local_addr().unwrap().ip(), IpAddr::V4(source));
        }
    }
}
