//! WebSockets without reconnect storms: a reconnecting client, and admission control, draining and keepalive for
//! servers.
//!
//! ```
//! use futures_util::{SinkExt, StreamExt};
//! use stagger_ws::{Client, Event, Message};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! # // A server that echoes one message and closes the connection.
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
//! A server restart disconnects all of its clients in the same instant, and what they do next decides whether the
//! restart becomes an outage. With backoff alone, all of them reconnect within the first backoff step. Here each client
//! first waits for a random *spread*, and backs off only after a failed attempt:
//!
//! ```text
//! connections lost ──▶ random spread ──▶ attempt ──▶ backoff ──▶ attempt ──▶ … ──▶ open
//!        ▲             [0, 10 s]                     equal jitter, 15 to 30 s       │
//!        └────── the count restarts only after a connection was up for 10 s ◀───────┘
//! ```
//!
//! Every loss is spread, however short the connection lived; after one that was not up for 10 s, the wait is the larger
//! of the spread's draw and the backoff's. The client does not give up, unless the policy has a limit or the server's
//! answer is permanent. After ten failed attempts in a row it says that the server is unreachable:
//! [`Event::Unreachable`].
//!
//! If the machine slept, or the process was stopped, all timers that came due meanwhile fire at once. A wait that ended
//! more than a second ago is spread again.
//!
//! The spread should be at least the time that the server needs to accept all clients: clients divided by accepted
//! connections per second.
//!
//! | task | use |
//! |---|---|
//! | read events and send messages, with reconnects in the background | [`Client`], and a [`Handle`] for other tasks |
//! | write the loop yourself, one connection at a time | [`ReconnectLoop`] |
//! | configure retries, credentials and limits | [`ClientBuilder`] |
//! | choose the meaning of close codes | [`codes`] |
//! | limit the messages that wait to be sent | [`Outbox`] |
//! | resend messages that the server has not acknowledged | [`AckedClient`] |
//! | resume where the last connection ended | [`Resume`] |
//! | connect through a proxy, or test without a network | [`Connector`] |
//!
//! # What a failure means
//!
//! | failure | reaction |
//! |---|---|
//! | connection reset, or lost without a close frame; keepalive timeout | spread, then backoff |
//! | connection refused or timed out, unknown host name | the same |
//! | close frame | depends on the close code: [`codes`] |
//! | 401, 403 | one more attempt, with fresh [credentials](ConnectAttempt::auth_rejection); then fatal |
//! | 408, 425, 429, 5xx except 501, 505 to 508, 510 and 511 | backoff. `Retry-After` is a minimum |
//! | 503 or close code 1013 with a reservation of this crate's server | the reserved time, to the millisecond |
//! | 3xx | fatal, unless [redirects](ClientBuilder::max_redirects) are followed |
//! | any other response | fatal |
//! | bad certificate, wrong name, no common TLS version | fatal |
//! | I/O error or invalid data during the TLS handshake | backoff |
//! | violation of the protocol, text that is not UTF-8 | spread plus backoff; the connection was not healthy |
//! | message longer than the limit | fatal: the server would send it again |
//!
//! A spread is added to `Retry-After`. If it exceeds the policy's `max_hint`, the client gives up immediately; the
//! default policy has none. The token of a reservation is presented to the same server, once.
//!
//! A rule of the client's [retrier](ClientBuilder::retrier) for [`ConnectionError`], or for the `io::Error` in it,
//! takes the place of this table.
//!
//! After a fatal failure the client returns [`Fatal`] with the reason. The outbox is unchanged, and
//! [`reconnect_now`](Handle::reconnect_now) starts again.
//!
//! # Delivery guarantees
//!
//! A [`Client`] delivers at most once: a message that was handed to an open connection may be lost with it. For
//! at-least-once delivery, use [`AckedClient`], which needs a protocol with acknowledgements. To receive every message
//! of a server that numbers them, use [`Resume`].
//!
//! # Metrics and logs
//!
//! With the features `metrics` and `tracing`. `target` is the name of the [retrier](ClientBuilder::retrier).
//!
#![cfg_attr(feature = "client", doc = include_str!("client/metrics.md"))]
//!
#![cfg_attr(
    all(feature = "metrics", any(feature = "client", feature = "server")),
    doc = "[`describe_metrics`] gives the descriptions and units, those of the server included, to the recorder. "
)]
#![cfg_attr(all(feature = "metrics", feature = "client"), doc = "[`DOWNTIME_BUCKETS`] is for the histogram.")]
//!
//! Every attempt has a span `stagger.connect` at `DEBUG` with the fields `attempt`, `url.host` and `delay` (in
//! seconds). The events `reconnecting` (`DEBUG`), `ended` (`DEBUG`) and `giving up` (`WARN`) have the fields
//! `target_name`, `attempt`, `cause`, `silenced` and `silenced_ms`. They are rate-limited per target, shared by all
//! clients. Neither logs nor errors contain any part of a request except its host. (Tungstenite writes whole requests
//! to the `log` crate at level `TRACE`.)
//!
//! # Features
//!
//! `client` (default), `rustls` for `wss`, `server`, `axum`, `metrics`, `tracing`. All features are additive.
//!
//! # Dependencies before 1.0
//!
//! The public interface contains types and traits of these. Each new minor version of one is incompatible with the one
//! before, so a release of this crate that moves to it is incompatible, too: it raises the minor version, from 1.0 on
//! the major version.
//!
//! | dependency | feature | in the interface |
//! |---|---|---|
//! | axum 0.8 | `axum` | `Message`, `WebSocket`, `WebSocketUpgrade` |
//! | axum-core 0.5 | `axum` | extractors and responses |
//! | futures-core 0.3 | `client`, `server` | `Stream` is implemented |
//! | futures-sink 0.3 | `client`, `server` | `Sink` is implemented |
//! | rustls 0.23 | `rustls` | `ClientConfig` |
//! | tokio-tungstenite 0.29 | `server` | `WebSocketStream` |
//! | tungstenite 0.29 | `client`, `server` | `Message`, `WebSocketConfig`, `Error`; the version that axum uses |
//!
//! `metrics` 0.24 and `tracing` 0.1 have no type in it. If the program's recorder is of another version of `metrics`,
//! nothing is recorded, and there is no error.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod advice;
#[cfg(feature = "client")]
mod client;
#[cfg(all(feature = "metrics", any(feature = "client", feature = "server")))]
mod metrics;
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub mod server;
#[cfg(any(feature = "client", feature = "server"))]
mod sync;

#[cfg(all(feature = "metrics", feature = "client"))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "metrics", feature = "client"))))]
pub use self::metrics::DOWNTIME_BUCKETS;
#[cfg(all(feature = "metrics", any(feature = "client", feature = "server")))]
#[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
pub use self::metrics::describe_metrics;
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
