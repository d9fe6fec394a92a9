use core::net::SocketAddr;
use core::time::Duration;
use std::net::{TcpStream, ToSocketAddrs};

use http::Uri;

use super::args::DrillArgs;
use stagger_terminal::output::error::CliError;

/// A server that the user provides and restarts.
#[derive(Clone, Debug)]
pub(super) struct ExternalServer {
    pub(super) uri: Uri,
    pub(super) address: SocketAddr,
    /// Shell command that restarts the server; `None` if the user does it by hand.
    pub(super) restart: Option<String>,
}

/// Timeout of the connection that checks whether the server is reachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

impl ExternalServer {
    /// Returns the server of `--url`, if one is given, after checking that it is reachable.
    pub(super) fn from_args(args: &DrillArgs) -> Result<Option<Self>, CliError> {
        let Some(url) = args.url.as_deref() else { return Ok(None) };
        let wrong = |why: &str| CliError::usage(format_args!("--url: {why}"));
        let uri: Uri = url.parse().map_err(|error| {
            CliError::usage(format_args!("--url: {error}; expected a URL like ws://127.0.0.1:9000/feed"))
        })?;
        match uri.scheme_str() {
            Some("ws") => {}
            Some("wss") => {
                return Err(wrong(
                    "TLS is not supported; use the port behind the TLS proxy, such as ws://127.0.0.1:9000",
                ));
            }
            _ => return Err(wrong("the URL must start with ws://, such as ws://127.0.0.1:9000/feed")),
        }
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(80);
        let resolved = (host, port).to_socket_addrs();
        let resolved = resolved.map_err(|error| CliError::io(format_args!("--url: cannot resolve {host}"), error))?;
        let addresses: Vec<SocketAddr> = resolved.collect();
        if !args.i_own_this_server && !addresses.iter().all(|address| address.ip().is_loopback()) {
            return Err(wrong(
                "a drill overloads the server, and this host is another machine; use a loopback address, or add \
                 --i-own-this-server if you own the server and nothing else depends on it",
            ));
        }
        let mut last_error = None;
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(_) => return Ok(Some(Self { uri, address, restart: args.restart_cmd.clone() })),
                Err(error) => last_error = Some(error),
            }
        }
        let error = last_error.unwrap_or_else(|| std::io::ErrorKind::NotFound.into());
        Err(CliError::io(format_args!("--url: cannot connect to {host}:{port}; start your server first"), error))
    }
}
