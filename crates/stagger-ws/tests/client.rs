//! Tests of the client.

#![cfg(feature = "client")]

#[cfg(test)]
mod client {
    mod acked;
    mod acking_server;
    mod close_codes;
    mod events;
    mod failures;
    mod fleet;
    mod guards;
    mod interleavings;
    mod memory;
    mod misbehaving_servers;
    mod outbox;
    mod parity;
    mod peer;
    mod reconnect_loop;
    mod resume;
    mod scripted_server;
    #[cfg(all(feature = "metrics", feature = "tracing"))]
    mod telemetry;
    mod third_party;
    #[cfg(feature = "rustls")]
    mod tls;
    mod unreachable;
}
