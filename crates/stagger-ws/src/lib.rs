//! WebSockets that come back without stampeding: a reconnecting client, and the server's half that survives it.

mod advice;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub mod server;

pub use advice::Advice;
