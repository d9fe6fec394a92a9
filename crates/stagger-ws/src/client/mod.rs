//! The reconnecting client.

mod acked;
mod background;
mod builder;
mod connection;
mod dial;
mod failure;
mod outbox;
mod reconnect_loop;
mod resume;
mod telemetry;
mod timer;

pub use acked::acks::{Ack, Acks};
pub use acked::client::{AckedClient, AckedHandle};
pub use background::event::{ConnectionState, Event, Opened};
pub use background::handle::Handle;
pub use background::stream::{Client, Messages};
pub use builder::ClientBuilder;
pub use connection::Connection;
pub use dial::connector::{Connector, Io, TcpConnector};
pub use dial::request::{BoxError, ConnectAttempt};
pub use failure::closed::Closed;
pub use failure::codes;
pub use failure::connection_error::ConnectionError;
pub use failure::fatal::Fatal;
pub use failure::rejected::UpgradeRejected;
pub use outbox::config::Outbox;
pub use outbox::error::{SendError, SendErrorKind};
pub use reconnect_loop::ReconnectLoop;
pub use resume::protocol::{Resume, ResumeStatus};
