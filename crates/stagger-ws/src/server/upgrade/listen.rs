use core::net::SocketAddr;
use std::io;

use tokio::net::{TcpListener, TcpSocket};

/// Creates a listener with an explicit backlog.
///
/// The backlog is the maximum number of connections that the kernel holds until they are accepted. Waiting there costs
/// a client nothing but time. If it is full, Linux does not answer at all, and the client's kernel sends its SYN again
/// after 1, 3, 7, 15 … seconds. These times have no jitter and are the same for all clients, so clients that were
/// dropped together come back together, and no retry policy can change that. A rejection by the application is better,
/// because it tells the client when to come back. So choose a backlog as large as the expected reconnect storm, accept
/// quickly, and reject above TCP.
///
/// - `std` and tokio use 128 or 1,024 by default. Many clients that reconnect within one round trip exceed that.
/// - The kernel silently caps the backlog at `net.core.somaxconn`, 4,096 by default since Linux 5.4. The queue of
///   half-open connections is bounded by the smaller of both and by `net.ipv4.tcp_max_syn_backlog`.
/// - `ss -ltn` shows the limit as `Send-Q` and the current length as `Recv-Q`.
/// - `nstat -az TcpExtListenOverflows TcpExtListenDrops` counts connections dropped by a full backlog; on the client
///   side, `nstat -az TcpRetransSegs TcpExtTCPSynRetrans` counts the retransmissions. These counters are per network
///   namespace. On a healthy server they do not grow.
///
/// Sets `SO_REUSEADDR`, so that the address can be used again immediately after a restart.
///
/// # Errors
/// Errors of `socket`, `bind` and `listen`, most often an address in use.
///
/// # Panics
/// If called outside of a tokio runtime with I/O enabled.
pub fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // On Windows this option would let two servers listen on the same address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}
