//! The server's half.
