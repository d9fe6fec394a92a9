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
use crate::error::CliError;
use crate::output::{print, to_json};

/// The server of a drill. It ends when its standard input does, so it never outlives the drill
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Where it listens
    #[arg(long)]
    pub(super) address: SocketAddr,

    /// How many connections the kernel keeps
    #[arg(long)]
    pub(super) listen_backlog: u32,

    /// How many it lets in a second; without it, everyone at once
    #[arg(long)]
    pub(super) rate: Option<f64>,

    /// How many may wait for that
    #[arg(long, default_value_t = 1)]
    pub(super) backlog: u32,

    /// When the drill began, in microseconds of Unix time
    #[arg(long, default_value_t = 0)]
    pub(super) since: u64,
}

/// Who may come in, and what has come of it.
#[derive(Debug)]
struct Door {
    began: Instant,
    /// How far the drill was then.
    ahead: Duration,
    seen: Mutex<Seen>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    served: ServerCounts,
    arrivals: TimeSeries,
    refusals: TimeSeries,
    acceptor: Option<Acceptor>,
}

/// What the server does next with somebody who has come.
#[derive(Clone, Copy, Debug)]
enum Turn {
    At(Instant),
    Never,
}

/// Serves until standard input ends, and then says what it has seen.
///
/// # Errors
/// The address cannot be had.
pub(crate) fn serve(args: &ServeArgs) -> Result<ExitCode, CliError> {
    let cannot = |source| CliError::io("the drill's server cannot be started", source);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(cannot)?;
    let listener = {
        let _entered = runtime.enter();
        listen(args.address, args.listen_backlog)
    }
    .map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let door = Arc::new(Door::new(args));
    runtime.spawn(accept(listener, Arc::clone(&door)));
    print(format!("{address}\n").as_bytes())?;
    // Nobody writes; whoever holds the other end is alive.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let seen = door.with(|seen| seen.clone());
    let text = to_json(&seen.served())?;
    // The clients are told nothing, as little as by a server that is killed.
    runtime.shutdown_background();
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

async fn accept(listener: TcpListener, door: Arc<Door>) {
    /// What is wrong with the next one may be wrong with the one after it.
    const BREATH: Duration = Duration::from_millis(10);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Decided here and not in the task, so that who comes first is first.
                let turn = door.arrived();
                tokio::spawn(answer(stream, turn, Arc::clone(&door)));
            }
            Err(_) => tokio::time::sleep(BREATH).await,
        }
    }
}

/// One connection, from its turn to its end.
async fn answer(stream: TcpStream, turn: Turn, door: Arc<Door>) {
    // Without it a connection works, too.
    let _ = stream.set_nodelay(true);
    match turn {
        Turn::Never => {
            // What it says has been said.
            let _ = accept_hdr_async_with_config(stream, Full, Some(small_buffers())).await;
        }
        Turn::At(turn) => {
            // A timer takes a millisecond, also where there is nothing to wait for.
            if turn > Instant::now() {
                tokio::time::sleep_until(turn.into()).await;
            }
            let Ok(mut socket) = accept_async_with_config(stream, Some(small_buffers())).await else { return };
            door.with(|seen| seen.served.active += 1);
            while let Some(Ok(_)) = socket.next().await {}
            door.with(|seen| seen.served.active -= 1);
        }
    }
}

/// Refuses above TCP: the kernel has let it in, and the server says no.
struct Full;

impl Callback for Full {
    fn on_request(self, _: &Request, _: Response) -> Result<Response, ErrorResponse> {
        let mut response = ErrorResponse::new(None);
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        let headers = response.headers_mut();
        headers.insert(http::header::CONTENT_LENGTH, http::HeaderValue::from_static("0"));
        headers.insert(http::header::CONNECTION, http::HeaderValue::from_static("close"));
        Err(response)
    }
}

impl Door {
    fn new(args: &ServeArgs) -> Self {
        let acceptor = args.rate.map(|rate| Acceptor::new(rate, args.backlog));
        let began = UNIX_EPOCH + Duration::from_micros(args.since);
        Self {
            began: Instant::now(),
            ahead: SystemTime::now().duration_since(began).unwrap_or_default(),
            seen: Mutex::new(Seen { acceptor, ..Seen::default() }),
        }
    }

    fn with<T>(&self, ask: impl FnOnce(&mut Seen) -> T) -> T {
        ask(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn arrived(&self) -> Turn {
        self.with(|seen| {
            let now = Instant::now();
            let at = self.ahead.saturating_add(now.saturating_duration_since(self.began));
            match seen.arrived(at) {
                Some(done) => Turn::At(now + done.saturating_sub(at)),
                None => Turn::Never,
            }
        })
    }
}

impl Seen {
    /// Somebody arrives: when they come in, if they do.
    fn arrived(&mut self, at: Duration) -> Option<Duration> {
        self.served.arrived += 1;
        if self.acceptor.is_some() {
            self.arrivals.record(at);
        }
        let done = self.acceptor.as_mut().map_or(Some(at), |acceptor| acceptor.offer(at));
        if done.is_some() {
            self.served.accepted += 1;
        } else {
            self.served.rejected += 1;
            self.refusals.record(at);
        }
        done
    }

    fn served(self) -> ServerCounts {
        let mut served = self.served;
        served.peak_backlog = self.acceptor.map_or(0, |acceptor| acceptor.peak_backlog());
        served.arrivals = self.arrivals.counts().to_vec();
        served.rejections = self.refusals.counts().to_vec();
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_beyond_rate_and_backlog_is_refused_and_all_are_counted() {
        let mut seen = Seen { acceptor: Some(Acceptor::new(10.0, 2)), ..Seen::default() };
        let second = Duration::from_secs(1);
        let turns = [second; 3].map(|at| seen.arrived(at));
        assert_eq!(turns, [Some(Duration::from_millis(1_100)), Some(Duration::from_millis(1_200)), None]);
        let served = seen.served();
        assert_eq!((served.arrived, served.accepted, served.rejected, served.peak_backlog), (3, 2, 1, 2));
        assert_eq!((served.arrivals[10], served.rejections[10]), (3, 1));
    }

    #[test]
    fn without_a_rate_everyone_comes_in_at_once() {
        let mut seen = Seen::default();
        let at = Duration::from_millis(5);
        assert_eq!([at; 3].map(|at| seen.arrived(at)), [Some(at); 3]);
    }
}
