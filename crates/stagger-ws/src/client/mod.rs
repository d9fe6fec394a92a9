//! The reconnecting client.

mod builder;
mod cause;
pub mod codes;
mod connection;
mod connector;
mod event;
mod fatal;
mod handshake;
mod heartbeat;
mod judge;
mod observe;
mod reconnector;
mod refusal;
mod request;
mod tls;

pub use builder::Builder;
pub use cause::Cause;
pub use connection::Connection;
pub use connector::{Connector, Io, Tcp};
pub use event::Closed;
pub use fatal::Fatal;
pub use reconnector::Reconnector;
pub use refusal::Refusal;
pub use request::{BoxError, ConnectAttempt};
