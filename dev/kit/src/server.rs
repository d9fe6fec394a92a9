use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::io::{Error, ErrorKind, Result};
use std::net::TcpStream;

use rustix::process::Signal;
use socket2::{Domain, Socket, Type};

use crate::process::capture::Stream;
use crate::process::program::Program;
use crate::process::running::{Finished, Running, poll_until};

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

/// A TCP port on 127.0.0.1, reserved while this value exists.
///
/// On Linux, a socket stays bound to the port with `SO_REUSEADDR` and never listens. A server that sets `SO_REUSEADDR`
/// itself, as nearly every server does, can still bind the port and listen, even again after it was killed; but the
/// kernel does not assign the port to port 0 binds or outgoing connections, of this test or of any other. A server that
/// does not set `SO_REUSEADDR` needs [`release`](Self::release).
#[derive(Debug)]
pub struct Port {
    number: u16,
    _reservation: Socket,
}

impl Port {
    /// Reserves a free port.
    ///
    /// # Errors
    /// If no port is free.
    pub fn reserve() -> Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        let number = socket.local_addr()?.as_socket().map_or(0, |bound| bound.port());
        Ok(Self { number, _reservation: socket })
    }

    /// Returns the port number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns the address of the port on 127.0.0.1.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.number))
    }

    /// Releases the reservation and returns the port number, which is free at that moment.
    #[must_use]
    pub fn release(self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::collections::HashSet;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;
    use crate::process::running::poll_until;

    #[test]
    fn ports_reserved_at_the_same_time_differ() {
        let reserve = || (0..200).map(|_| Port::reserve().unwrap()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(reserve)).collect();
        let ports: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(ports.iter().map(Port::number).collect::<HashSet<_>>().len(), 800);
    }

    #[test]
    fn a_server_can_listen_on_a_reserved_port_repeatedly() {
        let port = Port::reserve().unwrap();
        for _ in 0..3 {
            // Another test may be spawning a program, which has a copy of the last listener until it calls exec.
            let bound = poll_until(Duration::from_secs(10), || TcpListener::bind(port.address()).ok());
            let listener = bound.unwrap();
            let client = TcpStream::connect(port.address()).unwrap();
            // The server's side closes first, which leaves the port in TIME_WAIT.
            drop(listener.accept().unwrap());
            drop(client);
        }
    }

    #[test]
    fn a_reserved_port_refuses_connections() {
        let port = Port::reserve().unwrap();
        let refused = TcpStream::connect(port.address()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }

    /// Without the reservation, about 1 % of these assignments would return a reserved port: some thirty.
    #[test]
    fn the_kernel_does_not_assign_a_reserved_port() {
        let ports: Vec<_> = (0..300).map(|_| Port::reserve().unwrap()).collect();
        let reserved: HashSet<_> = ports.iter().map(Port::number).collect();
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for _ in 0..1500 {
            let found = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            assert!(!reserved.contains(&found.local_addr().unwrap().port()));
            let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
            assert!(!reserved.contains(&client.local_addr().unwrap().port()));
            drop(server.accept().unwrap());
        }
    }
}
