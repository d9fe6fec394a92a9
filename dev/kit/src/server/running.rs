use core::net::SocketAddr;
use core::time::Duration;
use std::io::{Error, ErrorKind, Result};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::process::capture::Stream;
use crate::process::program::Program;
use crate::process::running::poll_until;
use crate::process::running::{Finished, Running};

/// How to detect that a server is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ready {
    /// It accepts a connection on this address.
    Port(SocketAddr),
    /// It writes a line that contains this text. For servers that open their port before they can answer.
    Line(Stream, String),
}

/// A server that can be killed and restarted with the same program, port and data.
///
/// Dropping it kills the server and its descendants.
#[derive(Debug)]
pub struct Server {
    program: Program,
    ready: Ready,
    limit: Duration,
    /// The process; `None` between a kill and the restart.
    running: Option<Running>,
}

impl Server {
    /// Starts `program` and waits until it is ready, for at most `limit`; the same limit applies to restarts.
    ///
    /// # Errors
    /// It cannot be started, exits, or is not ready in time; the message contains its output.
    pub fn start(program: Program, ready: Ready, limit: Duration) -> Result<Self> {
        let mut server = Self { program, ready, limit, running: None };
        server.restart()?;
        Ok(server)
    }

    /// Kills the server if it is running, starts it and waits until it is ready.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn restart(&mut self) -> Result<()> {
        self.kill();
        let mut running = self.program.spawn()?;
        match &self.ready {
            Ready::Line(stream, wanted) => {
                running.wait_for(*stream, wanted, self.limit)?;
            }
            Ready::Port(address) => wait_for_port(&running, *address, self.limit)?,
        }
        self.running = Some(running);
        Ok(())
    }

    /// Sends SIGKILL to the server and its descendants. Returns when they are gone, so that a restart finds its port
    /// and its data unlocked. Does nothing if it is not running.
    pub fn kill(&mut self) {
        // Dropping the handle kills the processes.
        self.running = None;
    }

    /// Sends `signal` and waits for the end of the server, for at most `limit`.
    ///
    /// # Errors
    /// It is not running, or does not end in time; it is then killed.
    pub fn stop(&mut self, signal: Signal, limit: Duration) -> Result<Finished> {
        let running = self.running.take().ok_or_else(not_running)?;
        running.signal(signal)?;
        running.wait(limit)
    }

    /// Returns the process, to send it a signal or read its output.
    ///
    /// # Errors
    /// The server was killed and not restarted.
    pub fn running(&mut self) -> Result<&mut Running> {
        self.running.as_mut().ok_or_else(not_running)
    }
}

fn wait_for_port(running: &Running, address: SocketAddr, limit: Duration) -> Result<()> {
    let accepted = poll_until(limit, || {
        match TcpStream::connect_timeout(&address, limit) {
            // On an ephemeral port without a listener, a TCP connection can connect to itself.
            Ok(stream) if stream.local_addr().ok() != stream.peer_addr().ok() => Some(Ok(())),
            // Checked after the connection attempt: if the server has exited, another process may accept connections.
            _ if running.is_running() => None,
            _ => Some(Err(Error::other(format!("the server ended before it was ready; {}", running.output())))),
        }
    });
    accepted.unwrap_or_else(|| {
        let message = format!("no connection accepted on {address} after {limit:?}; {}", running.output());
        Err(Error::new(ErrorKind::TimedOut, message))
    })
}

fn not_running() -> Error {
    Error::new(ErrorKind::NotConnected, "the server is not running")
}
