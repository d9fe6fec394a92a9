use core::net::SocketAddr;
use core::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::wait::failure::Failure;

/// The most addresses of a name that are tried.
const MOST_ADDRESSES: usize = 8;

/// Time until the next address is tried beside the ones that have not answered (RFC 8305 §5, Connection Attempt Delay).
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// Connects to any address of `host`, and closes the connection.
pub(super) async fn connect(host: &str, port: u16) -> Result<(), Failure> {
    let found = lookup_host((host, port)).await.map_err(|error| Failure::lookup(host, &error))?;
    let none = Failure::new(format!("cannot look up {host}: no address"));
    connect_to_any(found.take(MOST_ADDRESSES), none).await
}

/// Connects to the first address that accepts, or returns the last failure, which is `last` without any address.
async fn connect_to_any(mut addresses: impl Iterator<Item = SocketAddr>, mut last: Failure) -> Result<(), Failure> {
    let mut connecting = FuturesUnordered::new();
    loop {
        if let Some(address) = addresses.next() {
            connecting.push(connect_to(address));
        }
        match timeout(NEXT_ADDRESS, connecting.next()).await {
            Ok(Some(Ok(()))) => return Ok(()),
            Ok(Some(Err(failure))) => last = failure,
            Ok(None) => return Err(last),
            // Its turn; if all addresses are being tried, the limit of the attempt ends this.
            Err(_) => {}
        }
    }
}

async fn connect_to(address: SocketAddr) -> Result<(), Failure> {
    accepted(&TcpStream::connect(address).await.map_err(|error| Failure::io(&error))?)
}

fn accepted(stream: &TcpStream) -> Result<(), Failure> {
    // Without a listener, a connection to a port that is also given to clients can connect to itself.
    let to_itself = matches!((stream.local_addr(), stream.peer_addr()), (Ok(local), Ok(peer)) if local == peer);
    if to_itself { Err(Failure::new("connection refused")) } else { Ok(()) }
}

/// Connects to a Unix socket, and closes the connection.
#[cfg(unix)]
pub(super) async fn connect_to_socket(path: &std::path::Path) -> Result<(), Failure> {
    tokio::net::UnixStream::connect(path).await.map(drop).map_err(|error| Failure::io(&error))
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;
    use std::net::TcpListener;

    use stagger_kit::Port;
    use tokio::runtime::Builder;

    use super::*;

    fn connect(addresses: Vec<SocketAddr>) -> Result<(), Failure> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(connect_to_any(addresses.into_iter(), Failure::new("no address")))
    }

    #[test]
    fn every_address_is_tried_until_one_accepts() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (listening, closed) = (listener.local_addr().unwrap(), Port::reserve().unwrap());
        // An address of a documentation network (RFC 5737), which does not answer.
        let silent = SocketAddr::from(([192, 0, 2, 1], 80));
        assert_eq!(connect(vec![closed.address(), listening]), Ok(()));
        assert_eq!(connect(vec![silent, closed.address(), listening]), Ok(()));
        assert_eq!(connect(vec![closed.address(), closed.address()]), Err(Failure::new("connection refused")));
        assert_eq!(connect(vec![]), Err(Failure::new("no address")));
    }

    /// About one in ten thousand ports of the range of clients is given to the connection itself, so the port is asked
    /// for.
    #[test]
    fn a_connection_to_itself_is_refused() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let failed = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
            let own = socket.local_addr().unwrap();
            accepted(&socket.connect(own).await.unwrap())
        });
        assert_eq!(failed, Err(Failure::new("connection refused")));
    }
}
