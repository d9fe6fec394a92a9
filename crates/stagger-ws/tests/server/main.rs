//! The server's half, over pipes in virtual time and over sockets on loopback.

mod admission;
mod axum;
mod backlog;
mod contract;
mod drain;
mod keepalive;
mod places;
mod support;
