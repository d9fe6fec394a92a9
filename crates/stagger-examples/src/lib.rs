//! Examples against real servers: see `examples`. They need `protoc`, PostgreSQL and Redis, which
//! `cargo xtask ci --only packages` installs.
