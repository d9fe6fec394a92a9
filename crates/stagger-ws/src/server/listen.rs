use core::net::SocketAddr;
use std::io;

use tokio::net::{TcpListener, TcpSocket};

/// Listens, with a backlog that was chosen.
///
/// The backlog is how many connections the kernel keeps that have come and that nobody has accepted yet. Waiting in it costs
/// a client nothing but time. Beyond it the kernel of Linux answers nothing at all: the client's own kernel sends its SYN
/// again after 1, 3, 7, 15 … seconds, the same for everyone, so that those who were dropped together come back together,
/// without jitter, below anything that a policy can reach. A refusal of ours, which says when to come back, is better than
/// that. So make the backlog as large as the herd that is to be answered, accept fast, and refuse above TCP.
///
/// - `std` and tokio take 128 or 1,024 unless they are asked. A fleet that comes back within one round trip overruns that.
/// - The kernel cuts it to `net.core.somaxconn`, 4,096 by default since Linux 5.4, without a word. The queue of half-open
///   connections is bounded by the smaller of both and by `net.ipv4.tcp_max_syn_backlog`.
/// - `ss -ltn` shows the limit in `Send-Q` and how full it is in `Recv-Q`.
/// - `nstat -az TcpExtListenOverflows TcpExtListenDrops` counters what was dropped because it was full, `nstat -az
///   TcpRetransSegs TcpExtTCPSynRetrans` on the clients' side the repetitions. The counters are those of the whole system, or
///   of its network namespace. They stand still in a server that is well.
///
/// The address can be used again at once after a restart (`SO_REUSEADDR`).
///
/// # Errors
/// Those of `socket`, `bind` and `listen`, above all an address in use.
///
/// # Panics
/// Outside of a runtime of tokio with I/O.
pub fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // On Windows the option would let two servers listen at once.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}
