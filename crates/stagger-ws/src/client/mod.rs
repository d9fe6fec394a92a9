//! The reconnecting client.

mod backlog;
mod builder;
mod cause;
pub mod codes;
mod connection;
mod connector;
mod event;
mod fatal;
mod handle;
mod handshake;
mod heartbeat;
mod judge;
mod observe;
mod outbox;
mod owner;
mod reconnector;
mod refusal;
mod request;
mod stream;
mod tls;

pub use builder::Builder;
pub use cause::Cause;
pub use connection::Connection;
pub use connector::{Connector, Io, Tcp};
pub use event::{Closed, Event, Opened, State};
pub use fatal::Fatal;
pub use handle::Handle;
pub use outbox::{Outbox, SendError, Unsent};
pub use reconnector::Reconnector;
pub use refusal::Refusal;
pub use request::{BoxError, ConnectAttempt};
pub use stream::{Client, Messages};
