use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use stagger::Admission;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::{Keepalive, Sockets};

/// The settings of [`Sockets`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct SocketsBuilder {
    pub(super) admission: Arc<Admission>,
    pub(super) name: Arc<str>,
    pub(super) max_connections: usize,
    pub(super) retry_after_when_full: Duration,
    pub(super) keepalive: Option<Keepalive>,
    pub(super) close_timeout: Duration,
    pub(super) handshake_timeout: Duration,
    pub(super) max_handshakes: usize,
    pub(super) websocket_config: WebSocketConfig,
}

/// What is wrong with the settings of [`Sockets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsError {
    /// A keepalive has a length of zero in it.
    Keepalive,
    /// No handshake could ever begin.
    MaxHandshakes,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keepalive => "a keepalive of zero would ping without end: raise interval and timeout, or use None",
            Self::MaxHandshakes => "with 0 handshakes at a time nobody could come in: use 1 or more",
        })
    }
}

impl core::error::Error for SettingsError {}

impl SocketsBuilder {
    pub(super) fn new(admission: Arc<Admission>) -> Self {
        Self {
            admission,
            name: "".into(),
            max_connections: usize::MAX,
            retry_after_when_full: Duration::from_secs(10),
            keepalive: Some(Keepalive::default()),
            close_timeout: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(10),
            max_handshakes: 1024,
            websocket_config: WebSocketConfig::default(),
        }
    }

    /// What the metrics and log events call this server: their label `target`. Default: nothing.
    pub fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }

    /// At most so many connections at a time. Default: no limit.
    pub fn max_connections(self, max_connections: usize) -> Self {
        Self { max_connections, ..self }
    }

    /// How long those are told to stay away who come when there is no place: not an appointment, since nobody knows when
    /// one will be free, but a `Retry-After` beyond which clients spread. Default 10 s.
    pub fn retry_after_when_full(self, retry_after_when_full: Duration) -> Self {
        Self { retry_after_when_full, ..self }
    }

    /// How dead peers are found; `None` if they are not. Default: [`Keepalive::default`].
    pub fn keepalive(self, keepalive: impl Into<Option<Keepalive>>) -> Self {
        Self { keepalive: keepalive.into(), ..self }
    }

    /// How long a client that a drain has closed may take to answer, before its connection is dropped. Default 5 s.
    pub fn close_timeout(self, close_timeout: Duration) -> Self {
        Self { close_timeout, ..self }
    }

    /// How long the handshake of [`Sockets::accept`] may take, from the connection of TCP to the answer. Default 10 s.
    pub fn handshake_timeout(self, handshake_timeout: Duration) -> Self {
        Self { handshake_timeout, ..self }
    }

    /// How many handshakes [`Sockets::serve`] has underway at a time. Whoever comes beyond stays in the kernel's backlog,
    /// where waiting costs nothing: see [`listen`](super::listen()). Default 1,024.
    pub fn max_handshakes(self, max_handshakes: usize) -> Self {
        Self { max_handshakes, ..self }
    }

    /// Sizes and buffers of the connections that [`Sockets::accept`] makes. tungstenite's default has a read buffer of
    /// 128 KiB for each.
    pub fn websocket_config(self, websocket_config: WebSocketConfig) -> Self {
        Self { websocket_config, ..self }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The first [`SettingsError`], with the way out.
    pub fn build(self) -> Result<Sockets, SettingsError> {
        if self.keepalive.is_some_and(|keepalive| keepalive.interval.is_zero() || keepalive.timeout.is_zero()) {
            return Err(SettingsError::Keepalive);
        }
        if self.max_handshakes == 0 {
            return Err(SettingsError::MaxHandshakes);
        }
        Ok(Sockets::from_builder(self))
    }
}
