//! The server's half: who may come in now, and how all of them leave without a stampede.
//!
//! [`Sockets`] is all the connections of one server. It lets in what the server can take and gives each of the others an
//! appointment, it finds peers that are gone, it moves everybody to the next server at the pace which that can take, and it
//! counters. An application's own code stays as it is: each connection has a [`ConnectionPermit`], which admission has let in and which
//! gives its place back however the connection ends, and [`ConnectionPermit::wrap`] makes of a WebSocket a [`Socket`], which is a
//! `Stream` and a `Sink` of the same messages.
//!
//! # On axum, with the feature `axum`
//!
//! [`ConnectionPermit`] is an extractor. Whoever may not come in gets a 503 before anything is made for the connection. A layer around
//! the route, like `stagger_http::tower::AdmissionLayer`, would count requests, and a request for an
//! upgrade is over when the connection begins.
//!
#![cfg_attr(feature = "axum", doc = "```no_run")]
#![cfg_attr(not(feature = "axum"), doc = "```ignore (needs the feature `axum`)")]
//! // It would wait for clients.
//! use axum::{Router, extract::ws::WebSocketUpgrade, response::Response, routing::any};
//! use futures_util::{SinkExt, StreamExt};
//! use stagger::Admission;
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
//! let sockets = Sockets::builder(Admission::per_second(500).build()?).max_connections(20_000).build()?;
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
//! # On plain tungstenite
//!
//! ```no_run
//! // It would wait for clients.
//! use futures_util::{SinkExt, StreamExt};
//! use stagger::Admission;
//! use stagger_ws::server::{Accepted, Drain, Sockets, listen};
//! use tokio::net::TcpStream;
//!
//! async fn echo(Accepted { mut socket, .. }: Accepted<TcpStream>) {
//!     while let Some(Ok(message)) = socket.next().await {
//!         if (message.is_text() || message.is_binary()) && socket.send(message).await.is_err() {
//!             break;
//!         }
//!     }
//! }
//!
//! # async fn example(stop: impl Future<Output = ()> + Send + 'static) -> Result<(), Box<dyn std::error::Error>> {
//! let sockets = Sockets::builder(Admission::per_second(500).build()?).max_connections(20_000).build()?;
//! let listener = listen("0.0.0.0:8080".parse()?, 4096)?;
//! let draining = sockets.clone();
//! tokio::spawn(async move {
//!     stop.await;
//!     draining.drain(Drain::per_second(500));
//! });
//! // Until the drain is done.
//! sockets.serve(listener, echo).await;
//! # Ok(())
//! # }
//! ```
//!
//! # What an application keeps to
//!
//! - It goes on reading until the stream ends, also after a send has failed: the client's last messages and its answer to
//!   the close come that way.
//! - Pings, the drain's close and the search for dead peers happen while somebody polls the socket. A task that waits for
//!   something else for long selects on [`Socket::next`](futures_util::StreamExt::next) as well, or, with a socket that is
//!   not guarded, on [`ConnectionPermit::close_requested`].
//!
//! # Metrics
//!
//! [`Sockets::snapshot`] has the numbers. With the feature `metrics`, [`Sockets::record_metrics`] gives them to whatever collects
//! metrics, at each scrape; the duration of upgrades is told as they happen. The names, labels and their values are part of
//! the interface. `target` is the name that the program gave, with [`SocketsBuilder::named`]. How the admission stands is
//! collected by [`Gauges::admission`](stagger::sinks), if that is wanted, too.
//!
#![doc = include_str!("contract.md")]
//!
//! All the same clients leave and come back at once: a sawtooth in `stagger_ws_connections_active`. They leave together when
//! this server, or what stands before it, is restarted without a [`Drain`], and `stagger_ws_rejected_total` says how the
//! return was met.
//!
//! # Events
//!
//! With the feature `tracing`, under the tracing target `stagger`, with a field `target_name`:
//!
//! | message | level | fields | when |
//! |---|---|---|---|
//! | `draining` | `INFO` | `total` | a drain begins |
//! | `drained` | `INFO` | `left` | it is over |
//! | `reaped` | `DEBUG` | | a peer was found dead |

mod accept;
#[cfg(feature = "axum")]
mod axum;
mod builder;
mod counters;
mod drain;
mod keepalive;
mod listen;
mod message;
mod permit;
mod registry;
mod rejected;
mod socket;
mod sockets;

pub use accept::{AcceptError, Accepted};
pub use builder::{SettingsError, SocketsBuilder};
pub use counters::{RejectionCounts, SocketsSnapshot};
pub use drain::{CloseRequest, Drain, DrainHandle, DrainProgress};
pub use keepalive::Keepalive;
pub use listen::listen;
pub use message::SocketMessage;
pub use permit::ConnectionPermit;
pub use rejected::UpgradeRejected;
pub use socket::Socket;
pub use sockets::Sockets;
