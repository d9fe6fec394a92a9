use core::net::SocketAddr;
use core::time::Duration;
use std::net::{TcpStream, ToSocketAddrs};

use http::Uri;

use super::args::DrillArgs;
use crate::error::CliError;

/// A server of somebody else, who restarts it.
#[derive(Clone, Debug)]
pub(super) struct ExternalServer {
    pub(super) uri: Uri,
    pub(super) address: SocketAddr,
    /// What restarts it, for the shell; without it, somebody does.
    pub(super) restart: Option<String>,
}

/// How long a server that is there may take for its first connection.
const PATIENCE: Duration = Duration::from_secs(3);

impl ExternalServer {
    /// The server of `--url`, if one is given. It is there.
    ///
    /// # Errors
    /// The address cannot be understood, is not of this machine and nobody insists, or nothing listens there.
    pub(super) fn of(args: &DrillArgs) -> Result<Option<Self>, CliError> {
        let Some(url) = args.url.as_deref() else { return Ok(None) };
        let wrong = |why: &str| CliError::usage(format_args!("--url: {why}"));
        let uri: Uri = url
            .parse()
            .map_err(|error| CliError::usage(format_args!("--url: {error}; write it like ws://127.0.0.1:9000/feed")))?;
        match uri.scheme_str() {
            Some("ws") => {}
            Some("wss") => return Err(wrong("a drill has no TLS; name the port behind it, like ws://127.0.0.1:9000")),
            _ => return Err(wrong("the address has to begin with ws://, like ws://127.0.0.1:9000/feed")),
        }
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(80);
        let found = (host, port).to_socket_addrs();
        let found = found.map_err(|error| CliError::io(format_args!("--url: cannot find {host}"), error))?;
        let addresses: Vec<SocketAddr> = found.collect();
        if !args.i_own_this_server && !addresses.iter().all(|address| address.ip().is_loopback()) {
            return Err(wrong(
                "a drill is a storm, and this is another machine; use an address of this one, or add --i-own-this-server if \
                 it is yours and nobody else depends on it",
            ));
        }
        let mut refused = None;
        for address in addresses {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(_) => return Ok(Some(Self { uri, address, restart: args.restart_cmd.clone() })),
                Err(error) => refused = Some(error),
            }
        }
        let error = refused.unwrap_or_else(|| std::io::ErrorKind::NotFound.into());
        Err(CliError::io(format_args!("--url: nothing answers at {host}:{port}; start your server first"), error))
    }
}
