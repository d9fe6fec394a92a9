use core::time::Duration;
use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::limits::{HEAD_TIMEOUT, MAX_CONNECTIONS, MAX_HEAD_BYTES};

/// Avoids a busy loop while `accept` keeps failing, for example for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);

/// Serves connections, of which a bounded number is open at a time.
pub(super) async fn serve(listener: TcpListener, routes: Router) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(place) = Arc::clone(&free).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, routes.clone(), place));
            }
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

async fn connection(stream: TcpStream, routes: Router, _place: OwnedSemaphorePermit) {
    // The connection works without it.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(routes);
    // Fails if the browser closes the connection, as it does when the page goes. The answer in progress is dropped with it.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
