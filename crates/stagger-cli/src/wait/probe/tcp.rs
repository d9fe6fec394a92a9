use core::net::SocketAddr;
use core::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::super::failure::Failure;

/// The most addresses of a name that are tried.
const MOST_ADDRESSES: usize = 8;

/// Time until the next address is tried beside the ones that have not answered (RFC 8305 §5, Connection Attempt Delay).
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// Connects to any address of `host`, and closes the connection.
pub(super) async fn connect(host: &str, port: u16) -> Result<(), Failure> {
    let found = lookup_host((host, port)).await.map_err(|error| Failure::lookup(host, &error))?;
    let mut addresses = found.take(MOST_ADDRESSES);
    let mut connecting = FuturesUnordered::new();
    let mut last = Failure::new(format!("cannot look up {host}: no address"));
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
    let stream = TcpStream::connect(address).await.map_err(|error| Failure::io(&error))?;
    // Without a listener, a connection to a port that is also given to clients can connect to itself.
    let to_itself = matches!((stream.local_addr(), stream.peer_addr()), (Ok(local), Ok(peer)) if local == peer);
    if to_itself { Err(Failure::new("connection refused")) } else { Ok(()) }
}
