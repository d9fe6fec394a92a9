//! The server process of a drill, `stagger drill-server`: WebSockets behind a rate limit and a bounded queue, or a
//! relay.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{self, BufRead};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use stagger_sim::TimeSeries;
use stagger_sim::reconnect::Acceptor;
use stagger_sim::storm::ServerCounts;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::{print, to_json};
use stagger_ws::server::listen;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_async_with_config;

use super::fleet::small_buffers;

/// Server of a drill. Ends when its standard input is closed, so it never outlives the drill
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Address to listen on
    #[arg(long)]
    pub(super) address: SocketAddr,

    /// Listen backlog of the kernel
    #[arg(long)]
    pub(super) listen_backlog: u32,

    /// Connections accepted per second; unlimited if not given
    #[arg(long)]
    pub(super) rate: Option<f64>,

    /// Number of connections that may wait to be accepted
    #[arg(long, default_value_t = 1)]
    pub(super) backlog: u32,

    /// Start of the drill, in microseconds of Unix time
    #[arg(long, default_value_t = 0)]
    pub(super) since: u64,

    /// Number of attempts and of connections whose times are reported
    #[arg(long, default_value_t = 0)]
    pub(super) record: u32,

    /// Address of another server, to which accepted connections are relayed
    #[arg(long)]
    pub(super) forward: Option<SocketAddr>,
}

/// What the server prints for each line that it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServerStatus {
    /// Number of TCP connections since its start.
    pub(super) arrived: u64,
    /// Number of open WebSockets.
    pub(super) active: u64,
}

/// What the server prints when its standard input is closed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Served {
    #[serde(flatten)]
    pub(super) counts: ServerCounts,
    /// Times of the attempts since the start of the drill, in microseconds, in the order of arrival.
    pub(super) arrived_at_us: Vec<u64>,
    /// Times at which WebSockets were opened, likewise.
    pub(super) connected_at_us: Vec<u64>,
}

impl ServeArgs {
    /// Returns the command line that starts this server.
    pub(super) fn to_words(&self) -> Vec<String> {
        let Self { address, listen_backlog, rate, backlog, since, record, forward } = self;
        let mut words = vec!["drill-server".to_owned()];
        words.extend([format!("--address={address}"), format!("--listen-backlog={listen_backlog}")]);
        if let Some(rate) = rate {
            words.extend([format!("--rate={rate}"), format!("--backlog={backlog}"), format!("--since={since}")]);
        }
        if *record > 0 {
            words.push(format!("--record={record}"));
        }
        if let Some(forward) = forward {
            words.push(format!("--forward={forward}"));
        }
        words
    }
}

/// State that all connections share: the rate limit and the counts.
#[derive(Debug)]
struct ServerState {
    started: Instant,
    /// Time from the start of the drill to the start of the server.
    offset: Duration,
    forward: Option<SocketAddr>,
    tally: Mutex<Tally>,
}

/// What is counted of the connections, and the limit that they meet.
#[derive(Clone, Debug, Default)]
struct Tally {
    counts: ServerCounts,
    arrivals: TimeSeries,
    rejections: TimeSeries,
    acceptor: Option<Acceptor>,
    /// Number of times of each kind that are recorded.
    record: usize,
    arrived_at_us: Vec<u64>,
    connected_at_us: Vec<u64>,
}

/// Serves until standard input is closed, then prints the counts.
pub fn serve(args: &ServeArgs) -> Result<ExitCode, CliError> {
    let cannot = |source| CliError::io("cannot start the server of the drill", source);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(cannot)?;
    let listener = {
        let _entered = runtime.enter();
        listen(args.address, args.listen_backlog)
    }
    .map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let state = Arc::new(ServerState::new(args));
    runtime.spawn(accept(listener, Arc::clone(&state)));
    print(format!("{address}\n").as_bytes())?;
    answer_questions(&state)?;
    let tally = state.with(|tally| tally.clone());
    let text = to_json(&tally.into_served())?;
    // Closes the connections without a closing handshake, as if the server was killed.
    runtime.shutdown_background();
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the status for each line of standard input, until it is closed, as it is when the drill ends.
fn answer_questions(state: &ServerState) -> Result<(), CliError> {
    for _ in io::stdin().lock().lines().map_while(Result::ok) {
        let status = state.with(|tally| ServerStatus { arrived: tally.counts.arrived, active: tally.counts.active });
        print(to_json(&status)?.as_bytes())?;
    }
    Ok(())
}

async fn accept(listener: TcpListener, state: Arc<ServerState>) {
    /// Avoids a busy loop while `accept` keeps failing, for example for lack of file descriptors.
    const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Decided here rather than in the task, so that connections are accepted in order of arrival.
                let accept_at = state.admit();
                tokio::spawn(handle(stream, accept_at, Arc::clone(&state)));
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

/// Handles one connection, which is accepted at `accept_at` or rejected, to its end.
async fn handle(stream: TcpStream, accept_at: Option<Instant>, state: Arc<ServerState>) {
    // The connection works without it.
    let _ = stream.set_nodelay(true);
    let Some(time) = accept_at else {
        // The client may have gone.
        let _ = reject(stream).await;
        return;
    };
    // A timer takes up to a millisecond even if its time has passed.
    if time > Instant::now() {
        tokio::time::sleep_until(time.into()).await;
    }
    if let Some(server) = state.forward {
        let mut is_open = false;
        // An error of either side ends the connection of the other.
        let _ = relay(stream, server, || {
            is_open = true;
            state.opened();
        })
        .await;
        if is_open {
            state.closed();
        }
        return;
    }
    let Ok(mut socket) = accept_async_with_config(stream, Some(small_buffers())).await else { return };
    state.opened();
    while let Some(Ok(_)) = socket.next().await {}
    state.closed();
}

/// Rejects a request of any protocol over HTTP with status 503. The kernel has already accepted the TCP connection.
async fn reject(mut stream: TcpStream) -> io::Result<()> {
    /// Longer heads, and slower ones, are answered before their end.
    const MAX_HEAD: usize = 16 << 10;
    const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
    let mut head = Vec::with_capacity(1 << 10);
    let read_head = async {
        while head.len() < MAX_HEAD && !head.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut head).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    };
    if let Ok(read) = tokio::time::timeout(HEAD_TIMEOUT, read_head).await {
        read?;
    }
    stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await?;
    stream.shutdown().await
}

/// How a server begins its answer to a WebSocket handshake that it accepts.
const SWITCHING: &[u8] = b"HTTP/1.1 101";

/// Relays a connection to a server until both directions have ended. Calls `opened` when the server has accepted the
/// WebSocket handshake; other protocols are relayed, too.
async fn relay(mut client: TcpStream, server: SocketAddr, opened: impl FnOnce()) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        let copied = copy(&mut from_client, &mut to_server).await;
        to_server.shutdown().await?;
        copied
    };
    let down = async {
        let mut answer = Vec::with_capacity(1 << 10);
        while answer.len() < SWITCHING.len() && from_server.read_buf(&mut answer).await? > 0 {}
        if answer.starts_with(SWITCHING) {
            opened();
        }
        to_client.write_all(&answer).await?;
        // An answer of HTTP may be large; a buffer for each of thousands of idle connections would be, too.
        drop(answer);
        let copied = copy(&mut from_server, &mut to_client).await;
        to_client.shutdown().await?;
        copied
    };
    // An error of one direction closes both connections; the end of one leaves the other open.
    tokio::try_join!(up, down).map(drop)
}

impl ServerState {
    fn new(args: &ServeArgs) -> Self {
        let acceptor = args.rate.map(|rate| Acceptor::new(rate, args.backlog));
        let drill_start = UNIX_EPOCH + Duration::from_micros(args.since);
        Self {
            started: Instant::now(),
            offset: SystemTime::now().duration_since(drill_start).unwrap_or_default(),
            forward: args.forward,
            tally: Mutex::new(Tally { acceptor, record: args.record as usize, ..Tally::default() }),
        }
    }

    /// Returns the time since the start of the drill.
    fn time(&self, now: Instant) -> Duration {
        self.offset.saturating_add(now.saturating_duration_since(self.started))
    }

    fn opened(&self) {
        self.with(|tally| tally.open(self.time(Instant::now())));
    }

    fn closed(&self) {
        self.with(|tally| tally.counts.active -= 1);
    }

    fn with<T>(&self, f: impl FnOnce(&mut Tally) -> T) -> T {
        f(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a new connection; returns when it is accepted, or `None` if it is rejected.
    fn admit(&self) -> Option<Instant> {
        self.with(|tally| {
            let now = Instant::now();
            let at = self.time(now);
            tally.admit(at).map(|done| now + done.saturating_sub(at))
        })
    }
}

impl Tally {
    fn admit(&mut self, at: Duration) -> Option<Duration> {
        self.counts.arrived += 1;
        if self.acceptor.is_some() {
            self.arrivals.record(at);
        }
        record(&mut self.arrived_at_us, self.record, at);
        let done = match &mut self.acceptor {
            Some(acceptor) => acceptor.offer(at),
            None => Some(at),
        };
        if done.is_some() {
            self.counts.accepted += 1;
        } else {
            self.counts.rejected += 1;
            self.rejections.record(at);
        }
        done
    }

    fn open(&mut self, at: Duration) {
        self.counts.active += 1;
        record(&mut self.connected_at_us, self.record, at);
    }

    fn into_served(self) -> Served {
        let mut counts = self.counts;
        if let Some(acceptor) = self.acceptor {
            counts.peak_backlog = acceptor.peak_backlog();
        }
        counts.arrivals = self.arrivals.counts().to_vec();
        counts.rejections = self.rejections.counts().to_vec();
        Served { counts, arrived_at_us: self.arrived_at_us, connected_at_us: self.connected_at_us }
    }
}

fn record(times: &mut Vec<u64>, most: usize, at: Duration) {
    if times.len() < most {
        times.push(u64::try_from(at.as_micros()).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_beyond_the_rate_and_the_backlog_are_rejected_and_counted() {
        let mut tally = Tally { acceptor: Some(Acceptor::new(10.0, 2)), ..Tally::default() };
        let second = Duration::from_secs(1);
        let decisions = [second; 3].map(|at| tally.admit(at));
        assert_eq!(decisions, [Some(Duration::from_millis(1_100)), Some(Duration::from_millis(1_200)), None]);
        let counts = tally.into_served().counts;
        assert_eq!((counts.arrived, counts.accepted, counts.rejected, counts.peak_backlog), (3, 2, 1, 2));
        assert_eq!((counts.arrivals[10], counts.rejections[10]), (3, 1));
    }

    #[test]
    fn the_recorded_times_are_bounded_and_the_counts_are_not() {
        let mut tally = Tally { record: 2, ..Tally::default() };
        for at in (1..=3).map(Duration::from_millis) {
            tally.admit(at);
            tally.open(at);
        }
        let served = tally.into_served();
        assert_eq!((&*served.arrived_at_us, &*served.connected_at_us), (&[1_000, 2_000][..], &[1_000, 2_000][..]));
        assert_eq!((served.counts.arrived, served.counts.active), (3, 3));
    }

    #[test]
    fn without_a_rate_all_connections_are_accepted_immediately() {
        let mut tally = Tally::default();
        let at = Duration::from_millis(5);
        assert_eq!([at; 3].map(|at| tally.admit(at)), [Some(at); 3]);
    }
}
