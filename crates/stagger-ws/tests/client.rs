//! What the client claims.

#![cfg(feature = "client")]

#[cfg(test)]
mod client {
    mod acked;
    mod bench;
    mod classes;
    mod fleet;
    mod foreign;
    mod high;
    mod hostile;
    mod interleavings;
    mod low;
    #[cfg(all(feature = "metrics", feature = "tracing"))]
    mod observed;
    mod outbox;
    mod peer;
    mod resume;
    mod store;
    #[cfg(feature = "rustls")]
    mod tls;
}
