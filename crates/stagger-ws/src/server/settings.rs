use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use stagger::admission::Admission;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use super::{Keepalive, Sockets};

/// The settings of [`Sockets`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct SocketsBuilder {
    pub(super) admission: Arc<Admission>,
    pub(super) name: Arc<str>,
    pub(super) most: usize,
    pub(super) full_wait: Duration,
    pub(super) keepalive: Option<Keepalive>,
    pub(super) close_timeout: Duration,
    pub(super) handshake_timeout: Duration,
    pub(super) handshakes: usize,
    pub(super) websocket: WebSocketConfig,
}

/// What is wrong with the settings of [`Sockets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsError {
    /// A keepalive has a length of zero in it.
    Keepalive,
    /// No handshake could ever begin.
    Handshakes,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keepalive => "a keepalive of zero would ping without end: raise every and dead_after, or use None",
            Self::Handshakes => "with 0 handshakes at a time nobody could come in: use 1 or more",
        })
    }
}

impl core::error::Error for SettingsError {}

impl SocketsBuilder {
    pub(super) fn new(admission: Arc<Admission>) -> Self {
        Self {
            admission,
            name: "".into(),
            most: usize::MAX,
            full_wait: Duration::from_secs(10),
            keepalive: Some(Keepalive::default()),
            close_timeout: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(10),
            handshakes: 1024,
            websocket: WebSocketConfig::default(),
        }
    }

    /// What the metrics and log events call this server: their label `target`. Default: nothing.
    pub fn named(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }

    /// At most so many connections at a time. Default: no limit.
    pub fn most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// How long those are told to stay away who come when there is no place: not an appointment, since nobody knows when
    /// one will be free, but a `Retry-After` beyond which clients spread. Default 10 s.
    pub fn full_wait(self, full_wait: Duration) -> Self {
        Self { full_wait, ..self }
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
    pub fn handshakes(self, handshakes: usize) -> Self {
        Self { handshakes, ..self }
    }

    /// Sizes and buffers of the connections that [`Sockets::accept`] makes. tungstenite's default has a read buffer of
    /// 128 KiB for each.
    pub fn websocket(self, websocket: WebSocketConfig) -> Self {
        Self { websocket, ..self }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The first [`SettingsError`], with the way out.
    pub fn build(self) -> Result<Sockets, SettingsError> {
        if self.keepalive.is_some_and(|keepalive| keepalive.every.is_zero() || keepalive.dead_after.is_zero()) {
            return Err(SettingsError::Keepalive);
        }
        if self.handshakes == 0 {
            return Err(SettingsError::Handshakes);
        }
        Ok(Sockets::with(self))
    }
}
