//! Rejected upgrades. The client writes bytes and reads bytes, so the server's work is what is measured.

use core::mem::forget;
use core::time::Duration;
use std::sync::LazyLock;

use futures_util::StreamExt as _;
use stagger::admission::{Admission, Secret};
use stagger_ws::server::{RejectBy, Sockets};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::yield_now;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::{BY_CLOSE, BY_RESPONSE, OPEN_AND_CLOSE};
use crate::case::{Case, Role, Table};
use crate::tokio_runtime;

const KEPT: u64 = 2_000;
/// The request of a browser.
const REQUEST: &[u8] = b"GET /feed HTTP/1.1\r\nHost: feed.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Origin: https://chat.example\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
/// A masked close frame with code 1013.
const REPLY: &[u8] = &[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xf5];
const REASON: &str = r#"{"retry_after_ms":1520,"reservation":"00000000000000010123456789abcdef"}"#;

/// Returns the rows of the table.
pub(super) fn cases() -> Vec<Case> {
    let row = |role, name, run| Case::work(Table::SocketRejected, role, name, run).keeping(KEPT);
    vec![
        row(Role::Bare, OPEN_AND_CLOSE, |times| reject(times, open_and_close)),
        row(Role::Stagger, BY_CLOSE, |times| reject(times, by_close)),
        Case::work(Table::SocketRejected, Role::Stagger, BY_RESPONSE, |times| reject(times, by_response)),
    ]
}

/// Rejects `times` clients. For 0, rejects the clients whose memory is measured, which never reply.
fn reject<F>(times: u64, server: fn(DuplexStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = tokio_runtime::connected();
    runtime.block_on(async {
        for _ in 0..times {
            let mut client = connect(server).await;
            let mut answer = [0; 512];
            let mut length = 0;
            // The end of the head, or of the reason.
            while !answer[..length].ends_with(b"close\r\n\r\n") && !answer[..length].ends_with(b"}") {
                length += client.read(&mut answer[length..]).await.expect("an answer");
            }
            let _ = client.write_all(REPLY).await;
            while client.read(&mut answer).await.is_ok_and(|read| read > 0) {}
        }
    });
    if times == 0 {
        runtime.block_on(async {
            for _ in 0..KEPT {
                forget(connect(server).await);
            }
            // All tasks have reached their wait.
            for _ in 0..16 {
                yield_now().await;
            }
        });
        forget(runtime);
    }
}

async fn connect<F>(server: fn(DuplexStream) -> F) -> DuplexStream
where
    F: Future<Output = ()> + Send + 'static,
{
    let (mut client, theirs) = duplex(1 << 10);
    tokio::spawn(server(theirs));
    client.write_all(REQUEST).await.expect("the pipe is open");
    client
}

/// What an application does without this project.
async fn open_and_close(stream: DuplexStream) {
    let Ok(mut socket) = accept_async(stream).await else { return };
    let _ = socket.close(Some(CloseFrame { code: 1013.into(), reason: REASON.into() })).await;
    while let Some(Ok(_)) = socket.next().await {}
}

async fn by_close(stream: DuplexStream) {
    static SOCKETS: LazyLock<Sockets> = LazyLock::new(|| sockets(RejectBy::Close));
    drop(SOCKETS.accept(stream).await);
}

async fn by_response(stream: DuplexStream) {
    static SOCKETS: LazyLock<Sockets> = LazyLock::new(|| sockets(RejectBy::Response));
    drop(SOCKETS.accept(stream).await);
}

/// Returns a server that has admitted the client of its burst and rejects all others for years.
fn sockets(reject_by: RejectBy) -> Sockets {
    let horizon = Duration::from_secs(1 << 30);
    let admission = Admission::per_second(1).burst(1).tolerance(Duration::ZERO, horizon).build(Secret::new([1; 16]));
    let settings = admission.map(|admission| {
        let settings = Sockets::builder(admission).reject_by(move |_, _| reject_by);
        settings.max_closing(usize::MAX).rejection_timeout(Duration::from_secs(3600)).build()
    });
    let sockets = settings.expect("a valid rate").expect("valid settings");
    drop(sockets.admit(&http::HeaderMap::new()));
    sockets
}
