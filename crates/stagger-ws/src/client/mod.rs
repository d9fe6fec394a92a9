//! The reconnecting client.
//!
//! | concern | files |
//! |---|---|
//! | settings | `builder` |
//! | connecting, again and again | `reconnect_loop`, with `dial`, `connector` and `tls` |
//! | one open connection | `connection`, `timer`, `resume` |
//! | the background task of a [`Client`] | `stream`, `handle`, `task`, `events` |
//! | messages to send | `outbox`, `outbox_queue`; with acknowledgements, `acked` and `ack_window` |
//! | what a failure means | `failure`, `classify`, `codes` |
//! | metrics and logs | `telemetry` |

mod ack_window;
mod acked;
mod builder;
mod classify;
pub mod codes;
mod connection;
mod connector;
mod dial;
mod events;
mod failure;
mod handle;
mod outbox;
mod outbox_queue;
mod reconnect_loop;
mod resume;
mod stream;
mod task;
mod telemetry;
mod timer;
#[cfg(feature = "rustls")]
mod tls;

pub use acked::{Ack, AckedClient, AckedHandle, Acks};
pub use builder::ClientBuilder;
pub use connection::Connection;
pub use connector::{Connector, Io, TcpConnector};
pub use dial::{BoxError, ConnectAttempt};
pub use events::{ConnectionState, Event, Opened};
pub use failure::{Closed, ConnectionError, Fatal, UpgradeRejected};
pub use handle::Handle;
pub use outbox::{Outbox, SendError, SendErrorKind};
pub use reconnect_loop::ReconnectLoop;
pub use resume::{Resume, ResumeStatus};
pub use stream::{Client, Messages};
