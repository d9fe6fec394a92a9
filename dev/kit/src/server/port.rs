use core::net::{Ipv4Addr, SocketAddr};
use std::io::Result;

use socket2::{Domain, Socket, Type};

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
    use super::*;
    use crate::process::running::poll_until;
    use core::time::Duration;
    use std::collections::HashSet;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

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
