use core::net::{Ipv4Addr, SocketAddr};
use std::io::IsTerminal;
use std::process::ExitCode;

use stagger_ws::server::listen;

use super::args::ServeArgs;
use super::limits::MAX_CONNECTIONS;
use super::listener::serve;
use super::routes::routes;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::{print, say};

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

/// Opens the page in the browser, if there is a desktop. Without one, the opener of Linux would start a browser in the terminal.
fn open(url: &str) {
    let has_display = || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if cfg!(target_os = "linux") && !has_display() {
        return;
    }
    if let Err(error) = open::that_detached(url) {
        say(&format!("cannot open the browser: {error}; open the address above"));
    }
}
