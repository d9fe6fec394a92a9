//! Examples against real servers, in `examples`, and the guide's rules for database clients, in `recipes`, whose tests
//! run against real servers, too.
//!
//! They require `protoc`, PostgreSQL, MariaDB, Redis and SQLite, which `cargo xtask ci --only packages` installs.
