//! WebSockets that come back without stampeding: a reconnecting client, and the server's half that survives it.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod advice;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub mod server;

pub use advice::Advice;
#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub use client::{
    BoxError, Builder, Cause, Client, Closed, ConnectAttempt, Connection, Connector, Event, Fatal, Handle, Io,
    Messages, Opened, Outbox, Reconnector, Refusal, SendError, State, Tcp, Unsent, codes,
};
#[cfg(feature = "client")]
pub use tokio_tungstenite::tungstenite::{Message, protocol::WebSocketConfig};
