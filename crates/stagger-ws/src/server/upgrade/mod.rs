//! How a request becomes a WebSocket: listening, and accepting with tungstenite or axum.

pub(super) mod accept;
#[cfg(feature = "axum")]
pub(super) mod axum;
mod handshakes;
pub(super) mod listen;
