//! What the client claims.

#![cfg(feature = "client")]

#[cfg(test)]
mod client {
    mod bench;
    mod classes;
    mod high;
    mod hostile;
    mod low;
    mod outbox;
    mod peer;
    #[cfg(feature = "rustls")]
    mod tls;
}
