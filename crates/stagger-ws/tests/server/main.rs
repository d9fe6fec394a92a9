//! Tests of the server: over pipes with paused time, and over sockets on loopback.

#[cfg(test)]
mod admission;
#[cfg(test)]
mod axum;
#[cfg(test)]
mod backlog;
#[cfg(test)]
mod capacity;
#[cfg(test)]
mod chromium;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod haproxy;
#[cfg(test)]
mod javascript;
#[cfg(test)]
mod keepalive;
#[cfg(test)]
mod migration;
#[cfg(test)]
mod nginx;
#[cfg(test)]
mod reject_by_close;
#[cfg(test)]
mod silent;
#[cfg(test)]
mod support;
