use core::convert::Infallible;
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::io::{self, BufRead};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use stagger_ws::server::listen;
use tokio::net::{TcpListener, TcpStream};

use super::settings::OutageSettings;
use super::workers::Workers;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::{print, to_json};

/// Server of a drill of an outage. Reads the start of the load from its standard input, and ends when that is closed
#[derive(Args, Clone, Copy, Debug)]
pub struct OutageServeArgs {
    /// Number of workers
    #[arg(long)]
    pub(super) workers: u32,

    /// Service time
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(super) service: Duration,

    /// Number of attempts that may be at the server; further ones are refused
    #[arg(long)]
    pub(super) backlog: u32,

    /// Start of the fault, from the start of the load
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(super) start: Duration,

    /// End of the fault
    #[arg(long, value_parser = humantime::parse_duration)]
    pub(super) end: Duration,

    /// Factor of the service time during the fault; without it, the server stalls
    #[arg(long)]
    pub(super) slow: Option<f64>,
}

/// The name of the hidden subcommand.
const SUBCOMMAND: &str = "drill-outage-server";

/// The path of the probes, which measure the latency: answered at once.
pub(super) const PROBE: &str = "/probe";

/// Connections that the kernel queues until the server accepts them.
const LISTEN_BACKLOG: u32 = 1_024;

/// Avoids a busy loop while `accept` keeps failing, for example for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);

impl OutageServeArgs {
    /// Returns the command line that starts this server.
    pub(super) fn to_words(self) -> Vec<String> {
        let time = |flag: &str, length| {
            format!("--{flag}={}", humantime::format_duration(length).to_string().replace(' ', ""))
        };
        let mut words = vec![
            SUBCOMMAND.to_owned(),
            format!("--workers={}", self.workers),
            format!("--backlog={}", self.backlog),
            time("service", self.service),
            time("start", self.start),
            time("end", self.end),
        ];
        words.extend(self.slow.map(|slow| format!("--slow={slow}")));
        words
    }
}

/// Serves until standard input is closed, then prints the counts.
pub fn serve(args: &OutageServeArgs) -> Result<ExitCode, CliError> {
    let cannot = |source| CliError::io("cannot start the server of the drill", source);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let entered = runtime.enter();
    let listener = listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), LISTEN_BACKLOG).map_err(cannot)?;
    let workers = Workers::start(args.workers, args.service, args.backlog);
    drop(entered);
    let address = listener.local_addr().map_err(cannot)?;
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let control = {
        std::thread::spawn({
            let (args, workers) = (*args, Arc::clone(&workers));
            move || follow(args, &workers, ended)
        })
    };
    print(format!("{address}\n").as_bytes())?;
    runtime.block_on(async {
        tokio::select! {
            () = accept(listener, &workers) => {}
            _ = end => {}
        }
    });
    let text = to_json(&workers.counts())?;
    // Closes the connections.
    runtime.shutdown_background();
    print(text.as_bytes())?;
    let _ = control.join();
    Ok(ExitCode::SUCCESS)
}

/// Reads the start of the load, in microseconds of Unix time, and waits until standard input is closed.
fn follow(args: OutageServeArgs, workers: &Workers, ended: tokio::sync::oneshot::Sender<()>) {
    let mut input = io::stdin().lock();
    let mut line = String::new();
    if input.read_line(&mut line).is_ok()
        && let Ok(since) = line.trim().parse::<u64>()
    {
        let wall = (UNIX_EPOCH + Duration::from_micros(since)).duration_since(SystemTime::now()).unwrap_or_default();
        workers.begin(OutageSettings::fault(&args, Instant::now() + wall));
        let _ = io::copy(&mut input, &mut io::sink());
    }
    let _ = ended.send(());
}

async fn accept(listener: TcpListener, workers: &Arc<Workers>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, Arc::clone(workers)));
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

async fn connection(stream: TcpStream, workers: Arc<Workers>) {
    // The connection works without it.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(request, Arc::clone(&workers)));
    // Fails if the client closes the connection, as it does after a timeout.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, workers: Arc<Workers>) -> Result<Response<String>, Infallible> {
    let mut response = Response::new(String::new());
    if request.uri().path() == PROBE {
        return Ok(response);
    }
    let is_served = match workers.offer() {
        Some(answer) => answer.await.is_ok(),
        None => false,
    };
    if !is_served {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}
