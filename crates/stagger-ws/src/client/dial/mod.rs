//! Opens connections: the request, the byte stream below it, and the handshake.

pub(super) mod connector;
pub(super) mod dialer;
pub(super) mod request;
pub(super) mod reservation;
#[cfg(feature = "rustls")]
mod tls;
