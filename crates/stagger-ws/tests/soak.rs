//! A server that is killed repeatedly while many clients are connected.
//!
//! Takes a few seconds. For fifty kills under 2,000 clients, which take two minutes:
//!
//! ```sh
//! SOAK_KILLS=50 SOAK_CLIENTS=2000 SOAK_EVERY_MS=1000 SOAK_CALM_MS=1000 \
//!   cargo test -p stagger-ws --test soak -- --nocapture
//! ```

#![cfg(all(feature = "client", target_os = "linux"))]

#[cfg(test)]
mod soak {
    mod fleet;
    mod kills;
    mod plan;
    mod server;
    mod store;
}
