//! What the client claims.

#![cfg(feature = "client")]

#[cfg(test)]
mod client {
    mod bench;
    mod classes;
    mod fleet;
    mod high;
    mod hostile;
    mod low;
    #[cfg(all(feature = "metrics", feature = "tracing"))]
    mod observed;
    mod outbox;
    mod peer;
    #[cfg(feature = "rustls")]
    mod tls;
}
