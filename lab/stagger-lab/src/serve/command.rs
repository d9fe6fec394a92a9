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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;

use super::limits::{HEAD_TIMEOUT, MAX_CONNECTION_TIME, MAX_CONNECTIONS, MAX_HEAD_BYTES, WRITE_TIMEOUT};
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
                // The connection works without it.
                let _ = stream.set_nodelay(true);
                tokio::spawn(connection(stream, routes.clone(), place));
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite, routes: Router, _place: OwnedSemaphorePermit) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let service = TowerToHyperService::new(routes);
    // Fails if the browser closes the connection, as it does when the page goes. The answer in progress is dropped with
    // it.
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let _ = tokio::time::timeout(MAX_CONNECTION_TIME, serving).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::{Instant, sleep};

    use super::*;

    /// Returns the side of a client that has sent a request, and how long its connection is kept.
    async fn kept(client: impl AsyncFn(DuplexStream)) -> Duration {
        let (mut ours, theirs) = duplex(64);
        let place = Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap();
        ours.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let routes = Router::new().fallback(|| async { "x".repeat(1_000) });
        let begun = Instant::now();
        tokio::select! {
            () = connection(theirs, routes, place) => begun.elapsed(),
            () = client(ours) => panic!("the client closed the connection"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_not_kept() {
        let kept = kept(async |_stream| core::future::pending().await).await;
        assert_eq!(kept, WRITE_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_a_byte_at_a_time_is_not_kept_for_ever() {
        let kept = kept(async |mut stream| {
            loop {
                sleep(WRITE_TIMEOUT / 2).await;
                let _ = stream.read(&mut [0; 1]).await;
            }
        })
        .await;
        assert_eq!(kept, MAX_CONNECTION_TIME);
    }
}
