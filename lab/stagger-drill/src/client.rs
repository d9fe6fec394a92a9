use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use futures_util::StreamExt;
use http::{Request, Uri};
use stagger::Retrier;
use stagger_core::{Policy, Seed};
use stagger_ws::{ReconnectLoop, WebSocketConfig};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;

use super::log::{Event, EventLog};
use super::status::FleetStatus;

#[derive(Clone, Debug)]
pub(super) struct ClientConfig {
    pub(super) uri: Uri,
    /// Resolved address of `uri`.
    pub(super) address: SocketAddr,
    pub(super) policy: Policy,
    pub(super) connect_timeout: Duration,
}

/// Returns a configuration for thousands of idle connections on one machine: the default buffers of tungstenite take
/// 140 KB per connection.
pub(super) fn small_buffers() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(1 << 10).write_buffer_size(1 << 10)
}

/// Runs one client: a [`ReconnectLoop`] with the policy under test, as an application would use it, until it gives up.
pub(super) async fn client(
    config: Arc<ClientConfig>,
    seed: Seed,
    source: Option<Ipv4Addr>,
    log: Arc<EventLog>,
    status: Arc<FleetStatus>,
    connect_permits: Arc<Semaphore>,
) {
    let mut first = connect_permits.acquire().await.ok();
    let mut links = reconnect_loop(&config, seed, source, &log, &status);
    let record = |event| {
        log.record(event);
        status.record(event);
    };
    while let Ok(Some(mut link)) = links.next_connection().await {
        record(Event::Connected);
        drop(first.take());
        while let Some(Ok(_)) = link.next().await {}
        record(Event::Lost);
    }
    record(Event::GaveUp);
}

fn reconnect_loop(
    config: &ClientConfig,
    seed: Seed,
    source: Option<Ipv4Addr>,
    log: &Arc<EventLog>,
    status: &Arc<FleetStatus>,
) -> ReconnectLoop {
    let (uri, to) = (config.uri.clone(), config.address);
    let (sent, failed) = ((Arc::clone(log), Arc::clone(status)), (Arc::clone(log), Arc::clone(status)));
    ReconnectLoop::builder()
        .request(move |_| {
            let (log, status) = &sent;
            log.record(Event::Sent);
            status.record(Event::Sent);
            let request = Request::get(uri.clone()).body(());
            async move { Ok(request?) }
        })
        .connector(move |_| connect(to, source))
        .on_closed(move |closed| {
            let (log, status) = &failed;
            // The loss of an open connection has been recorded already.
            if log.is_trying() {
                log.record(Event::Failed);
                status.failed(&closed.cause);
            }
        })
        .retrier(Retrier::new(config.policy).seed(seed))
        .connect_timeout(config.connect_timeout)
        // All clients connect within a second, so their pings would be synchronized.
        .no_keepalive()
        .websocket_config(small_buffers())
        .reconnect_loop()
}

async fn connect(to: SocketAddr, from: Option<Ipv4Addr>) -> io::Result<TcpStream> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(from) = from {
        // Allows ports in TIME_WAIT to be reused.
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
    fn a_client_can_bind_to_another_loopback_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for source in [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)] {
            let stream = runtime.block_on(connect(listener.local_addr().unwrap(), Some(source))).unwrap();
            assert_eq!(stream.local_addr().unwrap().ip(), IpAddr::V4(source));
        }
    }
}
