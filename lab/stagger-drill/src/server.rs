//! The server of a drill: a process of this program, or one that the user provides and restarts.

use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use http::Uri;
use serde::de::DeserializeOwned;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::say;

use super::args::DrillArgs;
use super::serve::ServerStatus;

/// The drill's own server: this program in a separate process, which can be killed and which ends when the drill does.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts the server with this command line of the program. It listens when this returns.
    pub(super) fn start(words: Vec<String>) -> Result<Self, CliError> {
        let cannot = |source| CliError::io("cannot start the drill's server", source);
        let mut command = Command::new(this_program().map_err(cannot)?);
        command.args(words);
        #[cfg(unix)]
        // Ctrl-C must reach only the drill, which then stops the server.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(cannot)?;
        let Some(stdout) = child.stdout.take() else { return Err(cannot(std::io::ErrorKind::BrokenPipe.into())) };
        // From here on, an error drops the server and thereby kills it.
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let mut server = Self { child, stdout: BufReader::new(stdout), address };
        let mut line = String::new();
        server.stdout.read_line(&mut line).map_err(cannot)?;
        server.address = line.trim().parse().map_err(|_| {
            // The server has printed the reason to standard error.
            cannot(std::io::Error::other("it ended before it was listening"))
        })?;
        Ok(server)
    }

    /// Kills the server, with SIGKILL on Unix. Its connections are closed when this returns.
    pub(super) fn kill(mut self) -> Result<(), CliError> {
        let cannot = |source| CliError::io("cannot kill the drill's server", source);
        self.child.kill().map_err(cannot)?;
        let status = self.child.wait().map_err(cannot)?;
        #[cfg(unix)]
        if std::os::unix::process::ExitStatusExt::signal(&status) != Some(rustix::process::Signal::KILL.as_raw()) {
            return Err(cannot(std::io::Error::other(format!("it had already ended: {status}"))));
        }
        #[cfg(not(unix))]
        let _ = status;
        Ok(())
    }

    /// Returns the number of its process.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Writes to the server's standard input.
    pub(super) fn tell(&mut self, text: &str) -> Result<(), CliError> {
        let Some(stdin) = &mut self.child.stdin else { return Ok(()) };
        stdin.write_all(text.as_bytes()).map_err(|source| CliError::io("cannot write to the drill's server", source))
    }

    /// Returns the status of the server, which may take as long as it takes to be scheduled.
    pub(super) fn status(&mut self) -> Result<ServerStatus, CliError> {
        let cannot = |source| CliError::io("cannot read the status of the drill's server", source);
        self.tell("\n")?;
        let mut line = String::new();
        self.stdout.read_line(&mut line).map_err(cannot)?;
        serde_json::from_str(&line).map_err(|error| cannot(error.into()))
    }

    /// Ends the server and returns what it counted.
    pub(super) fn report<T: DeserializeOwned>(mut self) -> Result<T, CliError> {
        let cannot = |source| CliError::io("cannot read the counts of the drill's server", source);
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).map_err(cannot)?;
        serde_json::from_str(&text).map_err(|error| cannot(error.into()))
    }
}

/// Returns the path of this program. On Linux it is valid even if the file has been replaced since the start.
pub(super) fn this_program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
        match uri.scheme_str().map(str::to_ascii_lowercase).as_deref() {
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

impl ExternalServer {
    /// Starts the restart command, or prompts the user to restart the server.
    pub(super) fn restart_server(&self) -> Result<Option<Child>, CliError> {
        let Some(line) = &self.restart else {
            say(&format!("all clients are connected; restart the server at {} now", self.uri));
            return Ok(None);
        };
        let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        let child = Command::new(shell).args([flag, line]).spawn();
        child.map(Some).map_err(|error| CliError::io("--restart-cmd: cannot start the command", error))
    }
}
