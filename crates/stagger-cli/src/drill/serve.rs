use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use futures_util::StreamExt;
use http::StatusCode;
use stagger_sim::TimeSeries;
use stagger_sim::reconnect::Acceptor;
use stagger_sim::storm::ServerCounts;
use stagger_ws::server::listen;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response};
use tokio_tungstenite::{accept_async_with_config, accept_hdr_async_with_config};

use super::client::small_buffers;
use crate::output::error::CliError;
use crate::output::write::{print, to_json};

/// Server of a drill. Ends when its standard input is closed, so it never outlives the drill
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
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
}

impl ServeArgs {
    /// Returns the command line that starts this server.
    pub(super) fn to_words(&self) -> Vec<String> {
        let Self { address, listen_backlog, rate, backlog, since } = self;
        let mut words = vec!["drill-server".to_owned()];
        words.extend([format!("--address={address}"), format!("--listen-backlog={listen_backlog}")]);
        if let Some(rate) = rate {
            words.extend([format!("--rate={rate}"), format!("--backlog={backlog}"), format!("--since={since}")]);
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
    tally: Mutex<Tally>,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    counts: ServerCounts,
    arrivals: TimeSeries,
    rejections: TimeSeries,
    acceptor: Option<Acceptor>,
}

/// Serves until standard input is closed, then prints the counts.
pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, CliError> {
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
    // Nothing is written to standard input; it is closed when the drill ends.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let tally = state.with(|tally| tally.clone());
    let text = to_json(&tally.into_counts())?;
    // Closes the connections without a closing handshake, as if the server was killed.
    runtime.shutdown_background();
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
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
        // Always an error, because the handshake is rejected.
        let _ = accept_hdr_async_with_config(stream, RejectWith503, Some(small_buffers())).await;
        return;
    };
    // A timer takes up to a millisecond even if its time has passed.
    if time > Instant::now() {
        tokio::time::sleep_until(time.into()).await;
    }
    let Ok(mut socket) = accept_async_with_config(stream, Some(small_buffers())).await else { return };
    state.with(|tally| tally.counts.active += 1);
    while let Some(Ok(_)) = socket.next().await {}
    state.with(|tally| tally.counts.active -= 1);
}

/// Rejects the WebSocket handshake with status 503. The kernel has already accepted the TCP connection.
struct RejectWith503;

impl Callback for RejectWith503 {
    fn on_request(self, _: &Request, _: Response) -> Result<Response, ErrorResponse> {
        let mut response = ErrorResponse::new(None);
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        let headers = response.headers_mut();
        headers.insert(http::header::CONTENT_LENGTH, http::HeaderValue::from_static("0"));
        headers.insert(http::header::CONNECTION, http::HeaderValue::from_static("close"));
        Err(response)
    }
}

impl ServerState {
    fn new(args: &ServeArgs) -> Self {
        let acceptor = args.rate.map(|rate| Acceptor::new(rate, args.backlog));
        let drill_start = UNIX_EPOCH + Duration::from_micros(args.since);
        Self {
            started: Instant::now(),
            offset: SystemTime::now().duration_since(drill_start).unwrap_or_default(),
            tally: Mutex::new(Tally { acceptor, ..Tally::default() }),
        }
    }

    fn with<T>(&self, f: impl FnOnce(&mut Tally) -> T) -> T {
        f(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts a new connection; returns when it is accepted, or `None` if it is rejected.
    fn admit(&self) -> Option<Instant> {
        self.with(|tally| {
            let now = Instant::now();
            let at = self.offset.saturating_add(now.saturating_duration_since(self.started));
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
        let done = self.acceptor.as_mut().map_or(Some(at), |acceptor| acceptor.offer(at));
        if done.is_some() {
            self.counts.accepted += 1;
        } else {
            self.counts.rejected += 1;
            self.rejections.record(at);
        }
        done
    }

    fn into_counts(self) -> ServerCounts {
        let mut counts = self.counts;
        counts.peak_backlog = self.acceptor.map_or(0, |acceptor| acceptor.peak_backlog());
        counts.arrivals = self.arrivals.counts().to_vec();
        counts.rejections = self.rejections.counts().to_vec();
        counts
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
        let counts = tally.into_counts();
        assert_eq!((counts.arrived, counts.accepted, counts.rejected, counts.peak_backlog), (3, 2, 1, 2));
        assert_eq!((counts.arrivals[10], counts.rejections[10]), (3, 1));
    }

    #[test]
    fn without_a_rate_all_connections_are_accepted_immediately() {
        let mut tally = Tally::default();
        let at = Duration::from_millis(5);
        assert_eq!([at; 3].map(|at| tally.admit(at)), [Some(at); 3]);
    }
}
