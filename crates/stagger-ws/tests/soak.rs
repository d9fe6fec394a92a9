//! A server that is killed again and again under many clients.
//!
//! In a few seconds here; `cargo xtask soak` has it last some minutes.

#![cfg(all(feature = "client", target_os = "linux"))]

#[cfg(test)]
mod soak {
    mod fleet;
    mod kills;
    mod plan;
    mod server;
    mod store;
}
