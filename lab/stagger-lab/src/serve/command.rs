//! The command: listens on the loopback interface, and opens the page.

use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use clap::Args;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::{print, say};
use stagger_ws::server::listen;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::{HEAD_TIMEOUT, MAX_CONNECTIONS, MAX_HEAD_BYTES};
use super::routes::routes;

/// Show a page in the browser on which two policies race against each other
#[derive(Args, Clone, Copy, Debug)]
#[command(
    before_help = "\
Examples:
  stagger serve
  stagger serve --port 8080 --no-open",
    after_help = "\
Prints the address of the page, and serves until Ctrl-C. Clients wait, attempt, are rejected and connect as `stagger \
simulate` computes it for the same seed. The address bar of the browser holds both policies and all settings, so an \
address can be kept or sent.

Listens on 127.0.0.1 only; scripts and forms of other sites are refused. Reads and writes no files.

Exit status: 2 for a usage error; 125 if the port is in use; 130 after Ctrl-C, 143 after SIGTERM."
)]
pub struct ServeArgs {
    /// Port to listen on; 0 for any free one
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Serve")]
    pub(super) port: u16,

    /// Do not open the browser
    #[arg(long, help_heading = "Serve")]
    pub(super) no_open: bool,
}

/// Runs `stagger serve`, until the process is killed.
pub fn run(args: &ServeArgs) -> Result<ExitCode, CliError> {
    let wanted = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), args.port);
    let cannot = |source| CliError::io(format_args!("cannot listen on {wanted}; try another --port, or 0"), source);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|source| CliError::io("cannot start the server", source))?;
    let entered = runtime.enter();
    let listener = listen(wanted, MAX_CONNECTIONS as u32).map_err(cannot)?;
    drop(entered);
    let address = listener.local_addr().map_err(cannot)?;
    let url = format!("http://{address}/");
    print(format!("{url}\n").as_bytes())?;
    if std::io::stderr().is_terminal() {
        say("Press Ctrl-C to stop.");
    }
    if !args.no_open {
        open(&url);
    }
    runtime.block_on(serve(listener, routes(address.port())));
    Ok(ExitCode::SUCCESS)
}

/// Opens the page in the browser, if there is a desktop. Without one, the opener of Linux would start a browser in the
/// terminal.
fn open(url: &str) {
    let has_display = || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if cfg!(target_os = "linux") && !has_display() {
        return;
    }
    if let Err(error) = open::that_detached(url) {
        say(&format!("cannot open the browser: {error}; open the address above"));
    }
}

/// Avoids a busy loop while `accept` keeps failing, for example for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);

/// Serves connections, of which a bounded number is open at a time.
pub(super) async fn serve(listener: TcpListener, routes: Router) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(place) = Arc::clone(&free).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, routes.clone(), place));
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

async fn connection(stream: TcpStream, routes: Router, _place: OwnedSemaphorePermit) {
    // The connection works without it.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(routes);
    // Fails if the browser closes the connection, as it does when the page goes. The answer in progress is dropped with
    // it.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
