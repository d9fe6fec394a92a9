//! The server side: admission control, keepalive, and draining without a reconnect storm.
//!
//! [`Sockets`] holds the shared state of all WebSockets of one server. It admits as many clients as the server can take
//! and assigns a reservation to each of the others, detects dead peers, moves clients to the next server at the rate
//! that it accepts, and exposes counters. The application's own code stays as it is: each admitted connection has a
//! [`ConnectionPermit`], which releases its slot however the connection ends, and [`ConnectionPermit::wrap`] turns a
//! WebSocket into a [`Socket`], a `Stream` and `Sink` of the same messages.
//!
//! # With axum (feature `axum`)
//!
//! [`ConnectionPermit`] is an extractor. A rejected client gets a 503 before any resources are allocated for its
//! connection. A layer around the route, such as `stagger_http::tower::AdmissionLayer`, would count requests instead,
//! and the request for an upgrade ends when the connection begins.
//!
#![cfg_attr(feature = "axum", doc = "```no_run")]
#![cfg_attr(not(feature = "axum"), doc = "```ignore (needs the feature axum)")]
//! // It would wait for clients.
//! use axum::{Router, extract::ws::WebSocketUpgrade, response::Response, routing::any};
//! use futures_util::{SinkExt, StreamExt};
//! use stagger::admission::{Admission, random_secret};
//! use stagger_ws::server::{ConnectionPermit, Drain, Sockets, listen};
//!
//! async fn echo(ws: WebSocketUpgrade, permit: ConnectionPermit) -> Response {
//!     ws.on_upgrade(async move |socket| {
//!         let mut socket = permit.wrap(socket);
//!         while let Some(Ok(message)) = socket.next().await {
//!             if socket.send(message).await.is_err() {
//!                 break;
//!             }
//!         }
//!     })
//! }
//!
//! # async fn example(stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Box<dyn std::error::Error>> {
//! let sockets = Sockets::builder(Admission::per_second(500).build(random_secret())?).max_connections(20_000).build()?;
//! let app = Router::new().route("/ws", any(echo)).with_state(sockets.clone());
//! let listener = listen("0.0.0.0:8080".parse()?, 4096)?;
//! axum::serve(listener, app)
//!     .with_graceful_shutdown(async move {
//!         stop.await;
//!         sockets.drain(Drain::per_second(500)).done().await;
//!     })
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # With tungstenite alone
//!
//! ```no_run
//! // It would wait for clients.
//! use futures_util::{SinkExt, StreamExt};
//! use stagger::admission::{Admission, random_secret};
//! use stagger_ws::server::{Accepted, Drain, Sockets, listen};
//! use tokio::net::TcpStream;
//!
//! async fn echo(Accepted { mut socket, .. }: Accepted<TcpStream>) {
//!     while let Some(Ok(message)) = socket.next().await {
//!         if message.is_text() || message.is_binary() {
//!             _ = socket.send(message).await;
//!         }
//!     }
//! }
//!
//! # async fn example(stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Box<dyn std::error::Error>> {
//! let sockets = Sockets::builder(Admission::per_second(500).build(random_secret())?).max_connections(20_000).build()?;
//! let listener = listen("0.0.0.0:8080".parse()?, 4096)?;
//! let draining = sockets.clone();
//! tokio::spawn(async move {
//!     stop.await;
//!     draining.drain(Drain::per_second(500));
//! });
//! // Returns when the drain is done.
//! sockets.serve(listener, echo).await;
//! # Ok(())
//! # }
//! ```
//!
//! # Browsers
//!
//! A page learns nothing of a rejected upgrade but close code 1006. [`RejectBy::Close`] accepts its WebSocket and
//! closes it with code 1013 and the time to come back as the reason, which the page reads in `CloseEvent.reason`:
//!
//! ```text
//! GET /feed                                ▶ 101 · close 1013 {"retry_after_ms":1520,"reservation":"0000…cdef"}
//! GET /feed, 1520 ms later                 ▶ 101
//!   Sec-WebSocket-Protocol: stagger-reservation.0000…cdef
//! ```
//!
//! - [`SocketsBuilder::reject_by`] chooses per request: [`RejectBy::browser`], [`RejectBy::subprotocol`], or a closure.
//!   The default is a response for all clients. With axum, it needs the extractor `AdmittedUpgrade`;
//!   [`ConnectionPermit`] always rejects by a response.
//! - The rejection is the same otherwise: the admission, a drain and the metrics do not tell one from the other.
//!   [`SocketsSnapshot::rejected_by_close`] counts the closes.
//! - The page presents the token in a subprotocol ([`RESERVATION_PROTOCOL`]) or in the query
//!   ([`RESERVATION_PARAMETER`]). A browser that offers subprotocols requires the server to select one. A rejected
//!   client gets its first one that is not a token; an admitted client that offers nothing but a token gets that one,
//!   and all others are up to the application.
//! - At most [`max_closing`](SocketsBuilder::max_closing) rejected clients are closed at a time; further ones get a
//!   503. Each has [`rejection_timeout`](SocketsBuilder::rejection_timeout) and 64 KiB to reply, and
//!   [`max_closing_per_peer`](SocketsBuilder::max_closing_per_peer) limits those of one address. With tungstenite, it
//!   has no buffers, and is not one of the handshakes any more.
//!
//! # Requirements for the application
//!
//! - Read until the stream ends, even after a send has failed: the client's last messages and its reply to the close
//!   arrive that way.
//! - Poll the socket: pings, the close of a drain and the detection of dead peers happen only then. A task that waits
//!   for something else also selects on [`Socket::next`](futures_util::StreamExt::next), or, for a WebSocket that is
//!   not wrapped, on [`ConnectionPermit::close_requested`].
//!
//! # Metrics
//!
//! [`Sockets::snapshot`] returns the current numbers. With the feature `metrics`, [`Sockets::record_metrics`] records
//! them, for example at each scrape; the duration of an upgrade is recorded when it completes. The names, the labels
//! and their values are part of the public API. `target` is the name set with [`SocketsBuilder::named`].
//! [`Gauges::admission`](stagger::observe) records the metrics of the admission.
//!
#![doc = include_str!("contract.md")]
//!
#![cfg_attr(
    feature = "metrics",
    doc = "[`describe_metrics`](crate::describe_metrics) gives the descriptions and units to the recorder."
)]
//! Upgrades end with the handshake timeout, 10 s by default, where the usual buckets of exporters end as well.
//!
//! If all clients disconnect and reconnect at once, `stagger_ws_connections_active` is a sawtooth. They disconnect
//! together if this server, or a proxy in front of it, is restarted without a [`Drain`]. `stagger_ws_rejected_total`
//! shows how the server handled their return.
//!
//! # Events
//!
//! With the feature `tracing`, under the tracing target `stagger`, with a field `target_name`:
//!
//! | message | level | fields | when |
//! |---|---|---|---|
//! | `draining` | `INFO` | `total` | a drain begins |
//! | `drained` | `INFO` | `remaining` | a drain is done |
//! | `reaped` | `DEBUG` | | a dead peer was detected |

mod accept;
#[cfg(feature = "axum")]
mod axum;
mod builder;
mod closing;
mod connections;
mod counters;
mod drain;
mod handshakes;
mod keepalive;
mod rejection;
mod socket;
mod sockets;
mod subprotocol;

#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
pub use self::axum::AdmittedUpgrade;
pub use accept::{AcceptError, Accepted, listen};
pub use builder::{SettingsError, SocketsBuilder};
pub use connections::ConnectionPermit;
pub use counters::{RejectionCounts, SocketsSnapshot};
pub use drain::{CloseRequest, Drain, DrainHandle, DrainProgress};
pub use keepalive::Keepalive;
pub use rejection::{RejectBy, UpgradeRejected};
pub use socket::{Socket, SocketMessage};
pub use sockets::Sockets;
pub use subprotocol::{RESERVATION_PARAMETER, RESERVATION_PROTOCOL};
