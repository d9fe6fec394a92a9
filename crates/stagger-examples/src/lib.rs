//! Examples against real servers, in `examples`. They require `protoc`, PostgreSQL and Redis, which
//! `cargo xtask ci --only packages` installs.
