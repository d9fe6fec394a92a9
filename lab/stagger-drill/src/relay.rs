use core::net::SocketAddr;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::TcpStream;

/// How a server begins its answer to a WebSocket handshake that it accepts.
const SWITCHING: &[u8] = b"HTTP/1.1 101";

/// Relays a connection to a server until both directions have ended. Calls `opened` when the server has accepted the WebSocket
/// handshake; other protocols are relayed, too.
pub(super) async fn relay(mut client: TcpStream, server: SocketAddr, opened: impl FnOnce()) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        let copied = copy(&mut from_client, &mut to_server).await;
        to_server.shutdown().await?;
        copied
    };
    let down = async {
        let mut answer = Vec::with_capacity(1 << 10);
        while answer.len() < SWITCHING.len() && from_server.read_buf(&mut answer).await? > 0 {}
        if answer.starts_with(SWITCHING) {
            opened();
        }
        to_client.write_all(&answer).await?;
        // An answer of HTTP may be large; a buffer for each of thousands of idle connections would be, too.
        drop(answer);
        let copied = copy(&mut from_server, &mut to_client).await;
        to_client.shutdown().await?;
        copied
    };
    // An error of one direction closes both connections; the end of one leaves the other open.
    tokio::try_join!(up, down).map(drop)
}
