//! The reconnecting client.
