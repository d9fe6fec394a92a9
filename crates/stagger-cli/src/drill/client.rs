use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use futures_util::StreamExt;
use http::{Request, Uri};
use stagger_core::{Policy, Seed};
use stagger_ws::{ReconnectLoop, WebSocketConfig};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;

use super::live::Live;
use super::log::{Event, Log};

/// What all clients have in common.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    pub(super) uri: Uri,
    /// Where that is.
    pub(super) address: SocketAddr,
    pub(super) policy: Policy,
    pub(super) connect_timeout: Duration,
}

/// Buffers for thousands of connections on one machine, which say nothing: tungstenite's own take 140 KB each.
pub(super) fn small_buffers() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(1 << 10).write_buffer_size(1 << 10)
}

/// One client, as an application has it: the library's own, with the policy on trial. It goes on until it gives up.
pub(super) async fn client(
    manner: Arc<Manner>,
    seed: Seed,
    source: Option<Ipv4Addr>,
    log: Arc<Log>,
    live: Arc<Live>,
    gate: Arc<Semaphore>,
) {
    let mut first = gate.acquire().await.ok();
    let mut links = reconnect_loop(&manner, seed, source, &log, &live);
    while let Ok(Some(mut link)) = links.next_connection().await {
        log.note(Event::Connected);
        live.connected();
        drop(first.take());
        while let Some(Ok(_)) = link.next().await {}
        log.note(Event::Lost);
        live.lost();
    }
    log.note(Event::GaveUp);
    live.gave_up();
}

fn reconnect_loop(
    manner: &Manner,
    seed: Seed,
    source: Option<Ipv4Addr>,
    log: &Arc<Log>,
    live: &Arc<Live>,
) -> ReconnectLoop {
    let (uri, to) = (manner.uri.clone(), manner.address);
    let (sent, failed) = ((Arc::clone(log), Arc::clone(live)), (Arc::clone(log), Arc::clone(live)));
    ReconnectLoop::builder()
        .request(move |_| {
            let (log, live) = &sent;
            log.note(Event::Sent);
            live.sent();
            let request = Request::get(uri.clone()).body(());
            async move { Ok(request?) }
        })
        .connector(move |_| connect(to, source))
        .on_closed(move |closed| {
            let (log, live) = &failed;
            // A loss has been noted when it came.
            if log.is_trying() {
                log.note(Event::Failed);
                live.failed(&closed.cause);
            }
        })
        .policy(manner.policy)
        .seed(seed)
        .connect_timeout(manner.connect_timeout)
        // All of them are connected within a second, and would ping in step.
        .no_keepalive()
        .websocket_config(small_buffers())
        .reconnect_loop()
}

async fn connect(to: SocketAddr, from: Option<Ipv4Addr>) -> io::Result<TcpStream> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(from) = from {
        // A port that waits for the last packets of its last connection can be had again.
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::new(IpAddr::V4(from), 0))?;
    }
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_client_can_come_from_another_address_of_this_machine() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for source in [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)] {
            let stream = runtime.block_on(connect(listener.local_addr().unwrap(), Some(source))).unwrap();
            assert_eq!(stream.local_addr().unwrap().ip(), IpAddr::V4(source));
        }
    }
}
