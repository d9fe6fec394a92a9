//! WebSockets that come back without stampeding: a reconnecting client, and the server's half that survives it.
//!
//! ```
//! use futures_util::{SinkExt, StreamExt};
//! use stagger_ws::{Client, Event, Message};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # // A server that answers with what it is sent, and ends with it.
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("ws://{}", listener.local_addr()?);
//! # tokio::spawn(async move {
//! #     let (stream, _) = listener.accept().await.unwrap();
//! #     let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
//! #     let message = socket.next().await.unwrap().unwrap();
//! #     socket.send(message).await.unwrap();
//! #     let code = tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode::Normal;
//! #     let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame { code, reason: "".into() };
//! #     socket.close(Some(frame)).await.unwrap();
//! # });
//! # let mut seen = Vec::new();
//! let mut ws = Client::builder().url(url).connect();
//! while let Some(event) = ws.next().await {
//!     match event? {
//!         Event::Open(_) => ws.send(Message::text("subscribe")).await?,
//!         Event::Message(message) => seen.push(message.to_string()),
//!         Event::Closed(closed) => eprintln!("{}, next try in {:?}", closed.cause, closed.retry_in),
//!         _ => {}
//!     }
//! }
//! assert_eq!(seen, ["subscribe"]);
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! A restart takes every client of a server offline in the same instant, and what they do next decides whether it becomes
//! an outage. Backoff alone brings them all back within its first step. Here each waits for a *spread* first, and backs off
//! from the first failure after it:
//!
//! ```text
//! all are dropped ──▶ spread, each its own ──▶ attempt ──▶ backoff ──▶ attempt ──▶ … ──▶ open
//!        ▲            [0, 10 s]                            full jitter, 500 ms to 30 s       │
//!        └──────────────── only what lived for 10 s starts the count again ◀─────────────────┘
//! ```
//!
//! The spread should be at least as long as the server needs to accept everyone: clients / accepts per second.
//!
//! | to … | use |
//! |---|---|
//! | read events and send messages, and have the rest seen to | [`Client`], and a [`Handle`] for other tasks |
//! | write the loop by hand: one connection at a time | [`ReconnectLoop`] |
//! | say how it connects: policy, credentials, limits | [`ClientBuilder`] |
//! | say what close codes mean, or choose a protocol's | [`codes`] |
//! | bound what waits to be sent | [`Outbox`] |
//! | send again what the server has not acknowledged | [`AckedClient`] |
//! | go on where the last connection left off | [`Resume`] |
//! | go through a proxy, or test without a network | [`Connector`] |
//!
//! # What a failure means
//!
//! | failure | then |
//! |---|---|
//! | reset, lost without a close frame, no such name, refused connection, timeout, silence | spread, then backoff |
//! | a close frame | by its code: [`codes`] |
//! | 401, 403 | the request is asked for again, once, with [`ConnectAttempt::auth_rejection`]; then fatal |
//! | 408, 425, 429, every 5xx but 501, 505 to 508, 510 and 511 | backoff; what `Retry-After` says is a floor, with a spread above it; longer than the policy's `max_hint`, it gives up at once |
//! | 3xx | fatal, unless it is [followed](ClientBuilder::max_redirects) |
//! | any other answer | fatal |
//! | a bad certificate, a wrong name, no common version of TLS | fatal |
//! | input or output during the TLS handshake, or babble | backoff |
//! | not the WebSocket protocol, a text that is not UTF-8 | spread and backoff together; the connection does not count as healthy |
//! | a message that is longer than the limit | fatal: it would come again |
//!
//! Fatal is an error with the reason in it, [`Fatal`]; the outbox stays as it is, and
//! [`reconnect_now`](Handle::reconnect_now) begins anew.
//!
//! # When not
//!
//! A message that a [`Client`] has handed to an open connection may be lost with it: that is at most once. A protocol that
//! acknowledges messages wants [`AckedClient`], one that numbers what the server says, [`Resume`].
//!
//! # Metrics and logs
//!
//! With the features `metrics` and `tracing`; `target` is what [`ClientBuilder::named`] says.
//!
#![cfg_attr(feature = "client", doc = include_str!("client/metrics.md"))]
//!
//! Every attempt has a span `stagger.connect` with the fields `attempt`, `url.host` and `delay` (in seconds), at `DEBUG`. The
//! events `reconnecting` (`DEBUG`), `ended` (`DEBUG`) and `giving up` (`WARN`) have `target_name`, `attempt`, `cause` and
//! `silenced`, and are limited per target, for all clients together. Nothing of a request but its host is ever told, neither
//! here nor by the errors. (Tungstenite itself writes whole requests to the `log` crate, at its level `TRACE`.)
//!
//! # Features
//!
//! `client` (default), `rustls` for `wss`, `server`, `axum`, `metrics`, `tracing`: each only adds.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod advice;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub mod server;

pub use advice::ReconnectAdvice;
#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub use client::{
    Ack, AckedClient, AckedHandle, Acks, BoxError, Client, ClientBuilder, Closed, ConnectAttempt, Connection,
    ConnectionError, ConnectionState, Connector, Event, Fatal, Handle, Io, Messages, Opened, Outbox, ReconnectLoop,
    Resume, ResumeStatus, SendError, SendErrorKind, TcpConnector, UpgradeRejected, codes,
};
#[cfg(feature = "client")]
pub use tokio_tungstenite::tungstenite::{Message, protocol::WebSocketConfig};
