use core::net::SocketAddr;
use core::time::Duration;
use std::io::{Error, ErrorKind, Result};
use std::net::TcpStream;

use rustix::process::Signal;

use crate::capture::Stream;
use crate::poll::poll_until;
use crate::program::Program;
use crate::running::{Finished, Running};

/// How to know that a server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ready {
    /// It accepts a connection here.
    Port(SocketAddr),
    /// It writes a line that contains this text. For servers that open their port before they can
    /// answer.
    Line(Stream, String),
}

/// A server that can be killed and comes back where it was: same program, same port, same data.
///
/// Dropping it kills it and all that it has started.
#[derive(Debug)]
pub struct Server {
    program: Program,
    ready: Ready,
    limit: Duration,
    /// `None` between a kill and the restart.
    running: Option<Running>,
}

impl Server {
    /// Starts `program` and waits until it is ready, at most `limit`; the same limit holds for
    /// restarts.
    ///
    /// # Errors
    /// If it cannot be started, ends at once, or is not ready in time; with what it wrote.
    pub fn start(program: Program, ready: Ready, limit: Duration) -> Result<Self> {
        let mut server = Self { program, ready, limit, running: None };
        server.restart()?;
        Ok(server)
    }

    /// Starts it again and waits until it is ready; kills it first if it runs.
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

    /// SIGKILL to the server and all that it has started. Returns when they are gone, so that a
    /// restart finds its port and its data free. Nothing happens if it does not run.
    pub fn kill(&mut self) {
        // Dropping the handle is what kills.
        self.running = None;
    }

    /// Asks it to end with `signal` and waits for it, at most `limit`.
    ///
    /// # Errors
    /// If it does not run, or does not end in time; then it is killed.
    pub fn stop(&mut self, signal: Signal, limit: Duration) -> Result<Finished> {
        let running = self.running.take().ok_or_else(not_running)?;
        running.signal(signal)?;
        running.wait(limit)
    }

    /// The process, to send it a signal or to read what it wrote.
    ///
    /// # Errors
    /// If it was killed and not restarted.
    pub fn running(&mut self) -> Result<&mut Running> {
        self.running.as_mut().ok_or_else(not_running)
    }
}

fn wait_for_port(running: &Running, address: SocketAddr, limit: Duration) -> Result<()> {
    let accepted = poll_until(limit, || {
        match TcpStream::connect_timeout(&address, limit) {
            // To a port of the ephemeral range where nobody listens, a connection can meet itself.
            Ok(stream) if stream.local_addr().ok() != stream.peer_addr().ok() => Some(Ok(())),
            // Asked last: whoever accepted while the server was dead was somebody else.
            _ if running.is_running() => None,
            _ => Some(Err(Error::other(format!("the server ended before it was ready; {}", running.output())))),
        }
    });
    accepted.unwrap_or_else(|| {
        let message = format!("nobody accepts on {address} after {limit:?}; {}", running.output());
        Err(Error::new(ErrorKind::TimedOut, message))
    })
}

fn not_running() -> Error {
    Error::new(ErrorKind::NotConnected, "the server does not run")
}
