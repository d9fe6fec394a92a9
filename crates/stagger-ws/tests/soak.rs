//! A server that is killed repeatedly while many clients are connected.
//!
//! Takes a few seconds; `cargo xtask soak` runs it for some minutes.

#![cfg(all(feature = "client", target_os = "linux"))]

#[cfg(test)]
mod soak {
    mod fleet;
    mod kills;
    mod plan;
    mod server;
    mod store;
}
